# Images of weft with libtpu, for GKE and TPU VMs:
#
#   docker build -t $IMAGE .                  weft alone: a JobSet, or docker run
#   docker build -t $IMAGE --target ray .     on Ray: a RayCluster or RayJob
#
# Each image that another is made from is an ARG, to be given by digest or from a registry of one's own. docs/gke.md.
ARG GO_IMAGE=golang:1.26.5-bookworm
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
ARG RAY_IMAGE=rayproject/ray:2.58.0-py311
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags disable_grpc_modules -ldflags "-s -w" -o /out/weft ./cmd/weft

# weft fetches the libtpu that it is tested with, at a pinned version and sha256; pip is all it takes of Python.
FROM ${PYTHON_IMAGE} AS libtpu
COPY --from=build /out/weft /usr/local/bin/weft
RUN cp "$(weft plugin install tpu)" /libtpu.so

# The user is Ray's. KubeRay's probes find bash and wget in Ray's images.
FROM ${RAY_IMAGE} AS ray
COPY --from=build /out/weft /usr/local/bin/weft
COPY --from=libtpu --chmod=755 /libtpu.so /opt/weft/libtpu.so
ENV TPU_LIBRARY_PATH=/opt/weft/libtpu.so

# Last, so that it is what is built without --target. The chips' devices belong to root.
FROM ${BASE_IMAGE} AS weft
COPY --from=build /out/weft /usr/local/bin/weft
COPY --from=libtpu --chmod=755 /libtpu.so /opt/weft/libtpu.so
ENV TPU_LIBRARY_PATH=/opt/weft/libtpu.so
ENTRYPOINT ["/usr/local/bin/weft"]
CMD ["--help"]
