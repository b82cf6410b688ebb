module @reduced attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["replica"=2, "y"=2, "x"=2]>
  func.func public @main(
      %arg0: tensor<8x4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, // "l"
      %arg1: tensor<8x6xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} // "r"
  ) -> (
      tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}
  ) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"replica", "y", "x"}, {}]>, <@mesh, [{"replica", "y", "x"}, {}]>] out_shardings=[<@mesh, [{"y", "x"}, {}]>] manual_axes={"replica", "y", "x"} (%1: tensor<1x4xbf16>, %2: tensor<1x6xbf16>) {
      %3 = stablehlo.dot_general %1, %2, contracting_dims = [0] x [0] : (tensor<1x4xbf16>, tensor<1x6xbf16>) -> tensor<4x6xf32>
      %4 = stablehlo.convert %3 : (tensor<4x6xf32>) -> tensor<4x6xbf16>
      %5 = "stablehlo.reduce_scatter"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
      ^bb0(%6: tensor<bf16>, %7: tensor<bf16>):
        %8 = stablehlo.add %6, %7 : tensor<bf16>
        stablehlo.return %8 : tensor<bf16>
      }) : (tensor<4x6xbf16>) -> tensor<2x6xbf16>
      %9 = "stablehlo.reduce_scatter"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
      ^bb0(%10: tensor<bf16>, %11: tensor<bf16>):
        %12 = stablehlo.add %10, %11 : tensor<bf16>
        stablehlo.return %12 : tensor<bf16>
      }) : (tensor<2x6xbf16>) -> tensor<1x6xbf16>
      %13 = "stablehlo.all_reduce"(%9) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%14: tensor<bf16>, %15: tensor<bf16>):
        %16 = stablehlo.add %14, %15 : tensor<bf16>
        stablehlo.return %16 : tensor<bf16>
      }) : (tensor<1x6xbf16>) -> tensor<1x6xbf16>
      %17 = stablehlo.convert %13 : (tensor<1x6xbf16>) -> tensor<1x6xf32>
      sdy.return %17 : tensor<1x6xf32>
    } : (tensor<8x4xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
