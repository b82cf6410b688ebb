module @"training step" attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=4]>
  func.func public @main(
      %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 1 : i32}, // "w0"
      %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 3 : i32}, // "w1"
      %arg2: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 2 : i32}, // "m0"
      %arg3: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 4 : i32}, // "m1"
      %arg4: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, // "x"
      %arg5: tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}]>}, // "labels"
      %arg6: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>} // "rate"
  ) -> (
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
      tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}
  ) {
    %0 = stablehlo.convert %arg4 : (tensor<4x16xf32>) -> tensor<4x16xbf16>
    %1 = stablehlo.convert %arg0 : (tensor<16x8xf32>) -> tensor<16x8xbf16>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<4x16xbf16>, tensor<16x8xbf16>) -> tensor<4x8xf32>
    %3 = stablehlo.tanh %2 : tensor<4x8xf32>
    %4 = stablehlo.convert %3 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %5 = stablehlo.convert %arg1 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
    %6 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
    %7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = stablehlo.reshape %8 : (tensor<4xf32>) -> tensor<4x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %11 = stablehlo.subtract %6, %10 : tensor<4x4xf32>
    %12 = stablehlo.exponential %11 : tensor<4x4xf32>
    %13 = stablehlo.constant dense<0.0> : tensor<f32>
    %14 = stablehlo.reduce(%12 init: %13) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = stablehlo.log %14 : tensor<4xf32>
    %16 = stablehlo.reshape %arg5 : (tensor<4xi32>) -> tensor<4x1xi32>
    %17 = stablehlo.iota dim = 1 : tensor<1x4xi32>
    %18 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<4x1xi32>) -> tensor<4x4xi32>
    %19 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<1x4xi32>) -> tensor<4x4xi32>
    %20 = stablehlo.compare EQ, %18, %19, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %21 = stablehlo.convert %20 : (tensor<4x4xi1>) -> tensor<4x4xf32>
    %22 = stablehlo.multiply %11, %21 : tensor<4x4xf32>
    %23 = stablehlo.reduce(%22 init: %13) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %24 = stablehlo.subtract %15, %23 : tensor<4xf32>
    %25 = stablehlo.reduce(%24 init: %13) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %26 = stablehlo.constant dense<2.5e-01> : tensor<f32>
    %27 = stablehlo.multiply %25, %26 : tensor<f32>
    %28 = stablehlo.constant dense<1.0> : tensor<f32>
    %29 = stablehlo.multiply %28, %26 : tensor<f32>
    %30 = stablehlo.reshape %29 : (tensor<f32>) -> tensor<1xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
    %32 = stablehlo.negate %31 : tensor<4xf32>
    %33 = stablehlo.reshape %32 : (tensor<4xf32>) -> tensor<4x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %35 = stablehlo.multiply %34, %21 : tensor<4x4xf32>
    %36 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %37 = stablehlo.divide %36, %14 : tensor<4xf32>
    %38 = stablehlo.multiply %31, %37 : tensor<4xf32>
    %39 = stablehlo.reshape %38 : (tensor<4xf32>) -> tensor<4x1xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %41 = stablehlo.multiply %40, %12 : tensor<4x4xf32>
    %42 = stablehlo.add %35, %41 : tensor<4x4xf32>
    %43 = stablehlo.reduce(%42 init: %13) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %44 = stablehlo.reshape %43 : (tensor<4xf32>) -> tensor<4x1xf32>
    %45 = stablehlo.negate %44 : tensor<4x1xf32>
    %46 = stablehlo.reshape %45 : (tensor<4x1xf32>) -> tensor<4xf32>
    %47 = stablehlo.reshape %8 : (tensor<4xf32>) -> tensor<4x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %49 = stablehlo.subtract %6, %48 : tensor<4x4xf32>
    %50 = stablehlo.sign %49 : tensor<4x4xf32>
    %51 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %52 = stablehlo.add %50, %51 : tensor<4x4xf32>
    %53 = stablehlo.sign %52 : tensor<4x4xf32>
    %54 = stablehlo.reshape %46 : (tensor<4xf32>) -> tensor<4x1xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %56 = stablehlo.multiply %55, %53 : tensor<4x4xf32>
    %57 = stablehlo.add %42, %56 : tensor<4x4xf32>
    %58 = stablehlo.convert %5 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    %59 = stablehlo.dot_general %57, %58, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<4x4xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>
    %60 = stablehlo.convert %59 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %61 = stablehlo.convert %4 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %62 = stablehlo.dot_general %57, %61, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %63 = stablehlo.transpose %62, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %64 = stablehlo.convert %63 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
    %65 = stablehlo.convert %64 : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    %66 = stablehlo.convert %60 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %67 = stablehlo.multiply %3, %3 : tensor<4x8xf32>
    %68 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %69 = stablehlo.subtract %68, %67 : tensor<4x8xf32>
    %70 = stablehlo.multiply %66, %69 : tensor<4x8xf32>
    %71 = stablehlo.convert %0 : (tensor<4x16xbf16>) -> tensor<4x16xf32>
    %72 = stablehlo.dot_general %70, %71, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %73 = stablehlo.transpose %72, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %74 = stablehlo.convert %73 : (tensor<16x8xf32>) -> tensor<16x8xbf16>
    %75 = stablehlo.convert %74 : (tensor<16x8xbf16>) -> tensor<16x8xf32>
    %76 = stablehlo.constant dense<9.0e-01> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %78 = stablehlo.multiply %arg2, %77 : tensor<16x8xf32>
    %79 = sdy.sharding_constraint %75 <@mesh, [{"fsdp"}, {}]> : tensor<16x8xf32>
    %80 = stablehlo.add %78, %79 : tensor<16x8xf32>
    %81 = stablehlo.broadcast_in_dim %arg6, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %82 = stablehlo.multiply %81, %80 : tensor<16x8xf32>
    %83 = stablehlo.subtract %arg0, %82 : tensor<16x8xf32>
    %84 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %85 = stablehlo.multiply %arg3, %84 : tensor<8x4xf32>
    %86 = sdy.sharding_constraint %65 <@mesh, [{"fsdp"}, {}]> : tensor<8x4xf32>
    %87 = stablehlo.add %85, %86 : tensor<8x4xf32>
    %88 = stablehlo.broadcast_in_dim %arg6, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %89 = stablehlo.multiply %88, %87 : tensor<8x4xf32>
    %90 = stablehlo.subtract %arg1, %89 : tensor<8x4xf32>
    return %27, %83, %80, %90, %87 : tensor<f32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
}
