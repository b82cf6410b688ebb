module @sharded attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "fsdp"=2]>
  func.func public @main(
      %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 0 : i32}, // "w"
      %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "fsdp"}, {}]>} // "x"
  ) -> (
      tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}
  ) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%2 = %0, %3 = %arg0) : tensor<i32>, tensor<8x4xf32>
    cond {
      %4 = stablehlo.constant dense<3> : tensor<i32>
      %5 = stablehlo.compare LT, %2, %4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %6 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.add %2, %6 : tensor<i32>
      %8 = stablehlo.dot_general %arg1, %3, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %9 = sdy.sharding_constraint %8 <@mesh, [{"data"}, {}]> : tensor<8x4xf32>
      %10 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      %11 = stablehlo.tanh %9 : tensor<8x4xf32>
      %12 = stablehlo.dot_general %10, %11, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      %13 = stablehlo.constant dense<1.25e-01> : tensor<f32>
      %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
      %15 = stablehlo.multiply %12, %14 : tensor<8x4xf32>
      %16 = stablehlo.subtract %3, %15 : tensor<8x4xf32>
      %17 = sdy.sharding_constraint %16 <@mesh, [{"fsdp"}, {}]> : tensor<8x4xf32>
      stablehlo.return %7, %17 : tensor<i32>, tensor<8x4xf32>
    }
    %18 = stablehlo.dot_general %arg1, %1#1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %19 = stablehlo.constant dense<0.0> : tensor<f32>
    %20 = stablehlo.reduce(%18 init: %19) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    return %1#1, %20 : tensor<8x4xf32>, tensor<f32>
  }
}
