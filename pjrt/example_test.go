package pjrt_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"weft/pjrt"
	"weft/pjrt/plugin"
)

// The whole way from a plugin to a result: x + x on one virtual CPU device. The program donates its argument.
func Example() {
	info, err := plugin.Ensure(context.Background(), "cpu", os.Stderr)
	check(err)
	p, err := pjrt.Load(info.Path)
	check(err)
	client, err := p.NewClient(map[string]any{"cpu_device_count": 1})
	check(err)
	program, err := client.Compile([]byte(`module @twice {
	  func.func public @main(%x: tensor<4xui8> {tf.aliasing_output = 0 : i32}) -> tensor<4xui8> {
	    %y = stablehlo.add %x, %x : tensor<4xui8>
	    return %y : tensor<4xui8>
	  }
	}`), pjrt.CompileOptions{})
	check(err)
	device := program.AddressableDevices()[0]
	x, err := client.BufferFromHost([]byte{1, 2, 3, 4}, pjrt.Uint8, []int{4}, device)
	check(err)

	outs, done, err := program.Execute([][]*pjrt.Buffer{{x}}, pjrt.ExecuteOptions{}) // [device][argument]
	check(err)
	check(pjrt.AwaitAll(done)) // the errors of the run itself
	y := outs[0][0]
	host := make([]byte, 4)
	check(y.ToHost(host))
	fmt.Println(device, y.DType(), y.Dims(), host, x.IsDeleted())

	for _, handle := range []interface{ Destroy() error }{x, y, program} { // a donated buffer's handle too
		check(handle.Destroy())
	}
	check(client.Close())
	// Output: CpuDevice(id=0) ui8 [4] [2 4 6 8] true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
