package job

import (
	"strings"

	"weft/pjrt"
)

// header prints what will be trained, before the compilation.
func (r *run) header() {
	trained, frozen := countParameters(r.model.Params())
	mesh := r.rt.Mesh()
	line := func(name, format string, args ...any) {
		r.report.printf("%-9s "+format, append([]any{name}, args...)...)
	}
	line("model", "%s (%s): %s parameters trained, %s frozen", r.files.arch.Info().Name, r.files.name, count(trained), count(frozen))
	line("devices", "%d × %s, mesh %s", mesh.NumDevices(), r.rt.DeviceKind(), mesh)
	line("dtypes", "compute %s; master weights float32; moments %s; exported as %s", r.ComputeDType, momentsText(r.FirstMomentDType), r.exportedDType())
	line("data", "%s", r.dataset.Stats())
	if r.evalSet != nil {
		line("eval", "%s", r.evalSet.Stats())
	}
	line("steps", "%d an epoch × %d epochs, global batch %d × %d tokens, %s", r.loader.StepsPerEpoch(), r.NumEpochs, r.globalBatch, r.MaxSeqLen, r.lastBatch())
}

// momentsText says what the moments are kept as.
func momentsText(first string) string {
	if first == DTypeFloat32 {
		return first
	}
	return first + " and float32"
}

func (r *run) exportedDType() string {
	switch {
	case r.ParamDType != DTypeAuto:
		return r.ParamDType
	case r.model.source != nil:
		return "each tensor came"
	}
	return strings.ToLower(r.files.arch.Info().DType.String())
}

// lastBatch says what becomes of the rows that do not fill a batch.
func (r *run) lastBatch() string {
	rest := r.dataset.Len() % r.globalBatch
	switch {
	case rest == 0:
		return "no row left over"
	case r.DropLast && r.Shuffle:
		return count(rest) + " rows of each epoch's order left out (--drop-last)"
	case r.DropLast:
		return "the last " + count(rest) + " rows left out (--drop-last)"
	}
	return "the last batch with " + count(rest) + " rows"
}

// memory prints what the run takes on each device, once the step is compiled and the state is there.
func (r *run) memory() {
	state := r.state.LocalBytes()
	plan := ""
	if m, err := r.step.MemoryStats(); err == nil {
		plan = ", a step " + size(int(stepBytes(m))) + " (temporaries " + size(int(m.Temp)) + ")"
	}
	r.report.printf("%-9s a device: parameters %s, optimizer %s%s", "memory", size(state.Params), size(state.Slots), plan)
	from := "compiled in"
	if r.step.FromCache {
		from = "loaded from the compile cache in"
	}
	r.report.printf("%-9s %s %.1f s", "program", from, r.step.CompileTime.Seconds())
}

// stepBytes is the memory that a step needs on a device, by the compiler's plan.
func stepBytes(m pjrt.CompiledMemoryStats) int64 {
	return m.Argument + m.Output - m.Alias + m.Temp + m.GeneratedCode
}
