package ray

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
)

// driver runs in the cluster.
//
//go:embed driver.py
var driver []byte

// DriverName and BinaryName are the names in the job's working folder.
const (
	DriverName = "weft_driver.py"
	BinaryName = "weft"
)

// Driver returns the program that runs weft within a cluster.
func Driver() []byte { return driver }

// Package is a zip file for the working folder of a job, named by its content.
type Package struct {
	Name  string // _ray_pkg_HASH.zip
	Bytes []byte
}

// URI is what a runtime environment calls the package once it is in the cluster.
func (p *Package) URI() string { return "gcs://" + p.Name }

// maxPackage is the size from which on Ray refuses a package.
const maxPackage = 512 << 20

// NewPackage packs the driver and, unless binary is "", the program at that path as BinaryName.
func NewPackage(binary string) (*Package, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	if err := addFile(z, DriverName, bytes.NewReader(driver)); err != nil {
		return nil, err
	}
	if binary != "" {
		f, err := os.Open(binary)
		if err != nil {
			return nil, fmt.Errorf("--binary: %w: give the path of a weft for Linux, or --binary image:weft for the one in the cluster's image", err)
		}
		defer f.Close()
		if err := addFile(z, BinaryName, f); err != nil {
			return nil, fmt.Errorf("pack %s: %w", binary, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if b.Len() >= maxPackage {
		return nil, fmt.Errorf("--binary %s: packed it has %d MB, Ray takes less than %d: put it into the cluster's image and give --binary image:weft", binary, b.Len()>>20, maxPackage>>20)
	}
	sum := sha256.Sum256(b.Bytes())
	return &Package{Name: "_ray_pkg_" + hex.EncodeToString(sum[:16]) + ".zip", Bytes: b.Bytes()}, nil
}

// addFile adds an executable file. It has no time, so that equal content gives an equal package.
func addFile(z *zip.Writer, name string, content io.Reader) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}

// Upload puts a package into the cluster, unless it is there. sent tells whether it was not.
func (c *Client) Upload(ctx context.Context, p *Package) (sent bool, err error) {
	path := "/api/packages/gcs/" + p.Name
	err = c.get(ctx, path, nil)
	if err == nil || !NotFound(err) {
		return false, err
	}
	if err := c.do(ctx, http.MethodPut, path, bytes.NewReader(p.Bytes), nil); err != nil {
		return false, fmt.Errorf("send weft to the cluster: %w", err)
	}
	return true, nil
}
