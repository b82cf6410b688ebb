module @train_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["fsdp"=4]>
  func.func public @main(
      %arg0: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 0 : i32}, // "embed_tokens"
      %arg1: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 1 : i32}, // "embed_tokens/exp_avg"
      %arg2: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>, tf.aliasing_output = 2 : i32}, // "embed_tokens/exp_avg_sq"
      %arg3: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>, tf.aliasing_output = 3 : i32}, // "norm"
      %arg4: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>, tf.aliasing_output = 4 : i32}, // "norm/exp_avg"
      %arg5: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>, tf.aliasing_output = 5 : i32}, // "norm/exp_avg_sq"
      %arg6: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 6 : i32}, // "layers.0-1:1.input_layernorm"
      %arg7: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 7 : i32}, // "layers.0-1:1.input_layernorm/exp_avg"
      %arg8: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 8 : i32}, // "layers.0-1:1.input_layernorm/exp_avg_sq"
      %arg9: tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 9 : i32}, // "layers.0-1:1.self_attn.q_proj"
      %arg10: tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 10 : i32}, // "layers.0-1:1.self_attn.q_proj/exp_avg"
      %arg11: tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 11 : i32}, // "layers.0-1:1.self_attn.q_proj/exp_avg_sq"
      %arg12: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 12 : i32}, // "layers.0-1:1.self_attn.q_norm"
      %arg13: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 13 : i32}, // "layers.0-1:1.self_attn.q_norm/exp_avg"
      %arg14: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 14 : i32}, // "layers.0-1:1.self_attn.q_norm/exp_avg_sq"
      %arg15: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 15 : i32}, // "layers.0-1:1.self_attn.k_proj"
      %arg16: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 16 : i32}, // "layers.0-1:1.self_attn.k_proj/exp_avg"
      %arg17: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 17 : i32}, // "layers.0-1:1.self_attn.k_proj/exp_avg_sq"
      %arg18: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 18 : i32}, // "layers.0-1:1.self_attn.k_norm"
      %arg19: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 19 : i32}, // "layers.0-1:1.self_attn.k_norm/exp_avg"
      %arg20: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 20 : i32}, // "layers.0-1:1.self_attn.k_norm/exp_avg_sq"
      %arg21: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 21 : i32}, // "layers.0-1:1.self_attn.v_proj"
      %arg22: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 22 : i32}, // "layers.0-1:1.self_attn.v_proj/exp_avg"
      %arg23: tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>, tf.aliasing_output = 23 : i32}, // "layers.0-1:1.self_attn.v_proj/exp_avg_sq"
      %arg24: tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 24 : i32}, // "layers.0-1:1.self_attn.o_proj"
      %arg25: tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 25 : i32}, // "layers.0-1:1.self_attn.o_proj/exp_avg"
      %arg26: tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 26 : i32}, // "layers.0-1:1.self_attn.o_proj/exp_avg_sq"
      %arg27: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 27 : i32}, // "layers.0-1:1.post_attention_layernorm"
      %arg28: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 28 : i32}, // "layers.0-1:1.post_attention_layernorm/exp_avg"
      %arg29: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 29 : i32}, // "layers.0-1:1.post_attention_layernorm/exp_avg_sq"
      %arg30: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 30 : i32}, // "layers.0-1:1.pre_feedforward_layernorm"
      %arg31: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 31 : i32}, // "layers.0-1:1.pre_feedforward_layernorm/exp_avg"
      %arg32: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 32 : i32}, // "layers.0-1:1.pre_feedforward_layernorm/exp_avg_sq"
      %arg33: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 33 : i32}, // "layers.0-1:1.mlp.gate_proj"
      %arg34: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 34 : i32}, // "layers.0-1:1.mlp.gate_proj/exp_avg"
      %arg35: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 35 : i32}, // "layers.0-1:1.mlp.gate_proj/exp_avg_sq"
      %arg36: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 36 : i32}, // "layers.0-1:1.mlp.up_proj"
      %arg37: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 37 : i32}, // "layers.0-1:1.mlp.up_proj/exp_avg"
      %arg38: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 38 : i32}, // "layers.0-1:1.mlp.up_proj/exp_avg_sq"
      %arg39: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 39 : i32}, // "layers.0-1:1.mlp.down_proj"
      %arg40: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 40 : i32}, // "layers.0-1:1.mlp.down_proj/exp_avg"
      %arg41: tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>, tf.aliasing_output = 41 : i32}, // "layers.0-1:1.mlp.down_proj/exp_avg_sq"
      %arg42: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 42 : i32}, // "layers.0-1:1.post_feedforward_layernorm"
      %arg43: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 43 : i32}, // "layers.0-1:1.post_feedforward_layernorm/exp_avg"
      %arg44: tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 44 : i32}, // "layers.0-1:1.post_feedforward_layernorm/exp_avg_sq"
      %arg45: tensor<16x32xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, // "input_ids"
      %arg46: tensor<16x32xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, // "labels"
      %arg47: tensor<16x32xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>}, // "mask"
      %arg48: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, // "hyper"
      %arg49: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>} // "request"
  ) -> (
      tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}]>},
      tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
      tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
      tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x96x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x48x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>},
      tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"fsdp"}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<2x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
      tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}
  ) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %1 = sdy.sharding_constraint %arg45 <@mesh, [{}, {}]> : tensor<16x32xi32>
    %2 = stablehlo.reshape %1 : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %3 = "stablehlo.gather"(%0, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 64>}> : (tensor<512x64xf32>, tensor<16x32x1xi32>) -> tensor<16x32x64xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{}, {}, {}]> : tensor<16x32x64xf32>
    %5 = sdy.sharding_constraint %4 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
    %6 = stablehlo.constant dense<8.0> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<16x32x64xf32>
    %9 = stablehlo.iota dim = 0 : tensor<32x12xf32>
    %10 = stablehlo.constant dense<[1.0, 4.641589e-01, 2.1544345e-01, 1.0e-01, 4.6415884e-02, 2.1544348e-02, 1.0e-02, 4.6415897e-03, 2.1544343e-03, 1.0e-03, 4.6415895e-04, 2.1544342e-04]> : tensor<12xf32>
    %11 = stablehlo.reshape %10 : (tensor<12xf32>) -> tensor<1x12xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x12xf32>) -> tensor<32x12xf32>
    %13 = stablehlo.multiply %9, %12 : tensor<32x12xf32>
    %14 = stablehlo.cosine %13 : tensor<32x12xf32>
    %15 = stablehlo.sine %13 : tensor<32x12xf32>
    %16 = stablehlo.constant dense<0.0> : tensor<f32>
    %17 = stablehlo.constant dense<1.5625e-02> : tensor<f32>
    %18 = stablehlo.constant dense<1.0e-06> : tensor<f32>
    %19 = stablehlo.constant dense<1.0> : tensor<f32>
    %20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %21 = stablehlo.constant dense<5.0e-01> : tensor<f32>
    %22 = stablehlo.constant dense<0.0> : tensor<f32>
    %23 = stablehlo.constant dense<0> : tensor<i32>
    %24 = stablehlo.constant dense<0.0> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<2x16x32x64xf32>
    %26:19 = stablehlo.while(%27 = %23, %28 = %8, %29 = %25, %30 = %arg6, %31 = %arg9, %32 = %arg12, %33 = %arg15, %34 = %arg18, %35 = %arg21, %36 = %arg24, %37 = %arg27, %38 = %arg30, %39 = %arg33, %40 = %arg36, %41 = %arg39, %42 = %arg42, %43 = %arg47, %44 = %14, %45 = %15) : tensor<i32>, tensor<16x32x64xf32>, tensor<2x16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    cond {
      %46 = stablehlo.constant dense<2> : tensor<i32>
      %47 = stablehlo.compare LT, %27, %46, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %47 : tensor<i1>
    } do {
      %48 = stablehlo.constant dense<0> : tensor<i32>
      %49 = stablehlo.dynamic_slice %30, %27, %48, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %50 = stablehlo.reshape %49 : (tensor<1x64xf32>) -> tensor<64xf32>
      %51 = stablehlo.dynamic_slice %31, %27, %48, %48, sizes = [1, 96, 64] : (tensor<2x96x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x64xf32>
      %52 = stablehlo.reshape %51 : (tensor<1x96x64xf32>) -> tensor<96x64xf32>
      %53 = sdy.sharding_constraint %52 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %54 = stablehlo.dynamic_slice %32, %27, %48, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %55 = stablehlo.reshape %54 : (tensor<1x24xf32>) -> tensor<24xf32>
      %56 = stablehlo.dynamic_slice %33, %27, %48, %48, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %57 = stablehlo.reshape %56 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %58 = sdy.sharding_constraint %57 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %59 = stablehlo.dynamic_slice %34, %27, %48, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %60 = stablehlo.reshape %59 : (tensor<1x24xf32>) -> tensor<24xf32>
      %61 = stablehlo.dynamic_slice %35, %27, %48, %48, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %62 = stablehlo.reshape %61 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %63 = sdy.sharding_constraint %62 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %64 = stablehlo.dynamic_slice %36, %27, %48, %48, sizes = [1, 64, 96] : (tensor<2x64x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x96xf32>
      %65 = stablehlo.reshape %64 : (tensor<1x64x96xf32>) -> tensor<64x96xf32>
      %66 = sdy.sharding_constraint %65 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %67 = stablehlo.dynamic_slice %37, %27, %48, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %68 = stablehlo.reshape %67 : (tensor<1x64xf32>) -> tensor<64xf32>
      %69 = stablehlo.dynamic_slice %38, %27, %48, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %70 = stablehlo.reshape %69 : (tensor<1x64xf32>) -> tensor<64xf32>
      %71 = stablehlo.dynamic_slice %39, %27, %48, %48, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %72 = stablehlo.reshape %71 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %73 = sdy.sharding_constraint %72 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %74 = stablehlo.dynamic_slice %40, %27, %48, %48, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %76 = sdy.sharding_constraint %75 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %77 = stablehlo.dynamic_slice %41, %27, %48, %48, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %78 = stablehlo.reshape %77 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %79 = sdy.sharding_constraint %78 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %80 = stablehlo.dynamic_slice %42, %27, %48, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %81 = stablehlo.reshape %80 : (tensor<1x64xf32>) -> tensor<64xf32>
      %82 = stablehlo.constant dense<1.5625e-02> : tensor<f32>
      %83 = stablehlo.constant dense<1.0e-06> : tensor<f32>
      %84 = stablehlo.constant dense<1.0> : tensor<f32>
      %85 = stablehlo.constant dense<4.1666668e-02> : tensor<f32>
      %86 = stablehlo.constant dense<16> : tensor<i32>
      %87 = stablehlo.constant dense<0> : tensor<i32>
      %88 = stablehlo.constant dense<1.7677669e-01> : tensor<f32>
      %89 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
      %90 = stablehlo.constant dense<4.4715e-02> : tensor<f32>
      %91 = stablehlo.constant dense<7.978846e-01> : tensor<f32>
      %92 = stablehlo.constant dense<5.0e-01> : tensor<f32>
      %93 = sdy.sharding_constraint %28 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %94 = stablehlo.multiply %93, %93 : tensor<16x32x64xf32>
      %95 = stablehlo.constant dense<0.0> : tensor<f32>
      %96 = stablehlo.reduce(%94 init: %95) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %97 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %98 = stablehlo.multiply %96, %97 : tensor<16x32xf32>
      %99 = stablehlo.reshape %98 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %100 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %101 = stablehlo.add %99, %100 : tensor<16x32x1xf32>
      %102 = stablehlo.sqrt %101 : tensor<16x32x1xf32>
      %103 = stablehlo.broadcast_in_dim %102, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %104 = stablehlo.divide %93, %103 : tensor<16x32x64xf32>
      %105 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %106 = stablehlo.add %105, %50 : tensor<64xf32>
      %107 = stablehlo.reshape %106 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %108 = stablehlo.broadcast_in_dim %107, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %109 = stablehlo.multiply %104, %108 : tensor<16x32x64xf32>
      %110 = sdy.sharding_constraint %53 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %111 = sdy.sharding_constraint %110 <@mesh, [{}, {}]> : tensor<96x64xf32>
      %112 = stablehlo.dot_general %109, %111, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<96x64xf32>) -> tensor<16x32x96xf32>
      %113 = stablehlo.reshape %112 : (tensor<16x32x96xf32>) -> tensor<16x32x4x24xf32>
      %114 = stablehlo.multiply %113, %113 : tensor<16x32x4x24xf32>
      %115 = stablehlo.reduce(%114 init: %95) applies stablehlo.add across dimensions = [3] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<16x32x4xf32>
      %116 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<f32>) -> tensor<16x32x4xf32>
      %117 = stablehlo.multiply %115, %116 : tensor<16x32x4xf32>
      %118 = stablehlo.reshape %117 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %119 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %120 = stablehlo.add %118, %119 : tensor<16x32x4x1xf32>
      %121 = stablehlo.sqrt %120 : tensor<16x32x4x1xf32>
      %122 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %123 = stablehlo.divide %113, %122 : tensor<16x32x4x24xf32>
      %124 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %125 = stablehlo.add %124, %55 : tensor<24xf32>
      %126 = stablehlo.reshape %125 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %127 = stablehlo.broadcast_in_dim %126, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x4x24xf32>
      %128 = stablehlo.multiply %123, %127 : tensor<16x32x4x24xf32>
      %129 = stablehlo.slice %128 [0:16, 0:32, 0:4, 0:12] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %130 = stablehlo.slice %128 [0:16, 0:32, 0:4, 12:24] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %131 = stablehlo.reshape %44 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %132 = stablehlo.reshape %45 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %133 = stablehlo.broadcast_in_dim %131, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %134 = stablehlo.multiply %129, %133 : tensor<16x32x4x12xf32>
      %135 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %136 = stablehlo.multiply %130, %135 : tensor<16x32x4x12xf32>
      %137 = stablehlo.subtract %134, %136 : tensor<16x32x4x12xf32>
      %138 = stablehlo.broadcast_in_dim %131, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %139 = stablehlo.multiply %130, %138 : tensor<16x32x4x12xf32>
      %140 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %141 = stablehlo.multiply %129, %140 : tensor<16x32x4x12xf32>
      %142 = stablehlo.add %139, %141 : tensor<16x32x4x12xf32>
      %143 = stablehlo.concatenate %137, %142, dim = 3 : (tensor<16x32x4x12xf32>, tensor<16x32x4x12xf32>) -> tensor<16x32x4x24xf32>
      %144 = sdy.sharding_constraint %58 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %145 = sdy.sharding_constraint %144 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %146 = stablehlo.dot_general %109, %145, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %147 = stablehlo.reshape %146 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %148 = sdy.sharding_constraint %63 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %149 = sdy.sharding_constraint %148 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %150 = stablehlo.dot_general %109, %149, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %151 = stablehlo.reshape %150 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %152 = stablehlo.multiply %147, %147 : tensor<16x32x2x24xf32>
      %153 = stablehlo.reduce(%152 init: %95) applies stablehlo.add across dimensions = [3] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<16x32x2xf32>
      %154 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<f32>) -> tensor<16x32x2xf32>
      %155 = stablehlo.multiply %153, %154 : tensor<16x32x2xf32>
      %156 = stablehlo.reshape %155 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %157 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %158 = stablehlo.add %156, %157 : tensor<16x32x2x1xf32>
      %159 = stablehlo.sqrt %158 : tensor<16x32x2x1xf32>
      %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %161 = stablehlo.divide %147, %160 : tensor<16x32x2x24xf32>
      %162 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %163 = stablehlo.add %162, %60 : tensor<24xf32>
      %164 = stablehlo.reshape %163 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %165 = stablehlo.broadcast_in_dim %164, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x2x24xf32>
      %166 = stablehlo.multiply %161, %165 : tensor<16x32x2x24xf32>
      %167 = stablehlo.slice %166 [0:16, 0:32, 0:2, 0:12] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %168 = stablehlo.slice %166 [0:16, 0:32, 0:2, 12:24] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %169 = stablehlo.reshape %44 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %170 = stablehlo.reshape %45 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %171 = stablehlo.broadcast_in_dim %169, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %172 = stablehlo.multiply %167, %171 : tensor<16x32x2x12xf32>
      %173 = stablehlo.broadcast_in_dim %170, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %174 = stablehlo.multiply %168, %173 : tensor<16x32x2x12xf32>
      %175 = stablehlo.subtract %172, %174 : tensor<16x32x2x12xf32>
      %176 = stablehlo.broadcast_in_dim %169, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %177 = stablehlo.multiply %168, %176 : tensor<16x32x2x12xf32>
      %178 = stablehlo.broadcast_in_dim %170, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %179 = stablehlo.multiply %167, %178 : tensor<16x32x2x12xf32>
      %180 = stablehlo.add %177, %179 : tensor<16x32x2x12xf32>
      %181 = stablehlo.concatenate %175, %180, dim = 3 : (tensor<16x32x2x12xf32>, tensor<16x32x2x12xf32>) -> tensor<16x32x2x24xf32>
      %182 = stablehlo.reshape %143 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %183 = stablehlo.dot_general %182, %181, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %184 = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %185 = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %186 = stablehlo.compare LE, %185, %184, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %187 = stablehlo.subtract %184, %185 : tensor<32x32xi32>
      %188 = stablehlo.broadcast_in_dim %86, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
      %189 = stablehlo.compare LT, %187, %188, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %190 = stablehlo.and %186, %189 : tensor<32x32xi1>
      %191 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
      %192 = stablehlo.compare NE, %43, %191, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
      %193 = stablehlo.reshape %190 : (tensor<32x32xi1>) -> tensor<1x1x32x1x32xi1>
      %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1, 2, 3, 4] : (tensor<1x1x32x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %195 = stablehlo.reshape %192 : (tensor<16x32xi1>) -> tensor<16x1x1x1x32xi1>
      %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2, 3, 4] : (tensor<16x1x1x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %197 = stablehlo.and %194, %196 : tensor<16x2x32x2x32xi1>
      %198 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %199 = stablehlo.multiply %183, %198 : tensor<16x2x32x2x32xf32>
      %200 = stablehlo.broadcast_in_dim %89, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %201 = stablehlo.select %197, %199, %200 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %202 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %203 = stablehlo.reduce(%201 init: %202) applies stablehlo.maximum across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %204 = stablehlo.reshape %203 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %205 = stablehlo.broadcast_in_dim %204, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %206 = stablehlo.subtract %201, %205 : tensor<16x2x32x2x32xf32>
      %207 = stablehlo.exponential %206 : tensor<16x2x32x2x32xf32>
      %208 = stablehlo.reduce(%207 init: %95) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %209 = stablehlo.reshape %208 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %210 = stablehlo.broadcast_in_dim %209, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %211 = stablehlo.divide %207, %210 : tensor<16x2x32x2x32xf32>
      %212 = stablehlo.dot_general %211, %151, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x24xf32>
      %213 = stablehlo.transpose %212, dims = [0, 2, 1, 3, 4] : (tensor<16x2x32x2x24xf32>) -> tensor<16x32x2x2x24xf32>
      %214 = stablehlo.reshape %213 : (tensor<16x32x2x2x24xf32>) -> tensor<16x32x96xf32>
      %215 = sdy.sharding_constraint %66 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %216 = sdy.sharding_constraint %215 <@mesh, [{}, {}]> : tensor<64x96xf32>
      %217 = stablehlo.dot_general %214, %216, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x96xf32>, tensor<64x96xf32>) -> tensor<16x32x64xf32>
      %218 = stablehlo.multiply %217, %217 : tensor<16x32x64xf32>
      %219 = stablehlo.reduce(%218 init: %95) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %220 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %221 = stablehlo.multiply %219, %220 : tensor<16x32xf32>
      %222 = stablehlo.reshape %221 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %223 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %224 = stablehlo.add %222, %223 : tensor<16x32x1xf32>
      %225 = stablehlo.sqrt %224 : tensor<16x32x1xf32>
      %226 = stablehlo.broadcast_in_dim %225, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %227 = stablehlo.divide %217, %226 : tensor<16x32x64xf32>
      %228 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %229 = stablehlo.add %228, %68 : tensor<64xf32>
      %230 = stablehlo.reshape %229 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %231 = stablehlo.broadcast_in_dim %230, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %232 = stablehlo.multiply %227, %231 : tensor<16x32x64xf32>
      %233 = stablehlo.add %93, %232 : tensor<16x32x64xf32>
      %234 = stablehlo.multiply %233, %233 : tensor<16x32x64xf32>
      %235 = stablehlo.reduce(%234 init: %95) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %236 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %237 = stablehlo.multiply %235, %236 : tensor<16x32xf32>
      %238 = stablehlo.reshape %237 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %239 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %240 = stablehlo.add %238, %239 : tensor<16x32x1xf32>
      %241 = stablehlo.sqrt %240 : tensor<16x32x1xf32>
      %242 = stablehlo.broadcast_in_dim %241, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %243 = stablehlo.divide %233, %242 : tensor<16x32x64xf32>
      %244 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %245 = stablehlo.add %244, %70 : tensor<64xf32>
      %246 = stablehlo.reshape %245 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %247 = stablehlo.broadcast_in_dim %246, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %248 = stablehlo.multiply %243, %247 : tensor<16x32x64xf32>
      %249 = sdy.sharding_constraint %73 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %250 = sdy.sharding_constraint %249 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %251 = stablehlo.dot_general %248, %250, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %252 = sdy.sharding_constraint %76 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %253 = sdy.sharding_constraint %252 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %254 = stablehlo.dot_general %248, %253, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %255 = stablehlo.multiply %251, %251 : tensor<16x32x64xf32>
      %256 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %257 = stablehlo.multiply %255, %256 : tensor<16x32x64xf32>
      %258 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %259 = stablehlo.add %258, %257 : tensor<16x32x64xf32>
      %260 = stablehlo.multiply %251, %259 : tensor<16x32x64xf32>
      %261 = stablehlo.broadcast_in_dim %91, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %262 = stablehlo.multiply %260, %261 : tensor<16x32x64xf32>
      %263 = stablehlo.tanh %262 : tensor<16x32x64xf32>
      %264 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %265 = stablehlo.add %264, %263 : tensor<16x32x64xf32>
      %266 = stablehlo.broadcast_in_dim %92, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %267 = stablehlo.multiply %265, %266 : tensor<16x32x64xf32>
      %268 = stablehlo.multiply %251, %267 : tensor<16x32x64xf32>
      %269 = stablehlo.multiply %268, %254 : tensor<16x32x64xf32>
      %270 = sdy.sharding_constraint %79 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %271 = sdy.sharding_constraint %270 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %272 = stablehlo.dot_general %269, %271, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %273 = stablehlo.multiply %272, %272 : tensor<16x32x64xf32>
      %274 = stablehlo.reduce(%273 init: %95) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %275 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %276 = stablehlo.multiply %274, %275 : tensor<16x32xf32>
      %277 = stablehlo.reshape %276 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %278 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %279 = stablehlo.add %277, %278 : tensor<16x32x1xf32>
      %280 = stablehlo.sqrt %279 : tensor<16x32x1xf32>
      %281 = stablehlo.broadcast_in_dim %280, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %282 = stablehlo.divide %272, %281 : tensor<16x32x64xf32>
      %283 = stablehlo.broadcast_in_dim %84, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %284 = stablehlo.add %283, %81 : tensor<64xf32>
      %285 = stablehlo.reshape %284 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %286 = stablehlo.broadcast_in_dim %285, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %287 = stablehlo.multiply %282, %286 : tensor<16x32x64xf32>
      %288 = stablehlo.add %233, %287 : tensor<16x32x64xf32>
      %289 = sdy.sharding_constraint %288 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %290 = stablehlo.constant dense<1> : tensor<i32>
      %291 = stablehlo.add %27, %290 : tensor<i32>
      %292 = stablehlo.reshape %93 : (tensor<16x32x64xf32>) -> tensor<1x16x32x64xf32>
      %293 = stablehlo.dynamic_update_slice %29, %292, %27, %48, %48, %48 : (tensor<2x16x32x64xf32>, tensor<1x16x32x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x32x64xf32>
      stablehlo.return %291, %289, %293, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45 : tensor<i32>, tensor<16x32x64xf32>, tensor<2x16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    }
    %294 = stablehlo.multiply %26#1, %26#1 : tensor<16x32x64xf32>
    %295 = stablehlo.reduce(%294 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %296 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %297 = stablehlo.multiply %295, %296 : tensor<16x32xf32>
    %298 = stablehlo.reshape %297 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %299 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %300 = stablehlo.add %298, %299 : tensor<16x32x1xf32>
    %301 = stablehlo.sqrt %300 : tensor<16x32x1xf32>
    %302 = stablehlo.broadcast_in_dim %301, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %303 = stablehlo.divide %26#1, %302 : tensor<16x32x64xf32>
    %304 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %305 = stablehlo.add %304, %arg3 : tensor<64xf32>
    %306 = stablehlo.reshape %305 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %307 = stablehlo.broadcast_in_dim %306, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %308 = stablehlo.multiply %303, %307 : tensor<16x32x64xf32>
    %309 = stablehlo.constant dense<-100> : tensor<i32>
    %310 = stablehlo.broadcast_in_dim %309, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %311 = stablehlo.slice %arg46 [0:16, 1:32] : (tensor<16x32xi32>) -> tensor<16x31xi32>
    %312 = stablehlo.concatenate %311, %310, dim = 1 : (tensor<16x31xi32>, tensor<16x1xi32>) -> tensor<16x32xi32>
    %313 = sdy.sharding_constraint %312 <@mesh, [{}, {}]> : tensor<16x32xi32>
    %314 = stablehlo.constant dense<-100> : tensor<i32>
    %315 = stablehlo.broadcast_in_dim %314, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %316 = stablehlo.compare NE, %313, %315, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
    %317 = stablehlo.convert %316 : (tensor<16x32xi1>) -> tensor<16x32xf32>
    %318 = stablehlo.reduce(%317 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %319 = sdy.sharding_constraint %308 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
    %320 = sdy.sharding_constraint %319 <@mesh, [{}, {}, {}]> : tensor<16x32x64xf32>
    %321 = sdy.sharding_constraint %arg0 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %322 = stablehlo.dot_general %320, %321, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<512x64xf32>) -> tensor<16x32x512xf32>
    %323 = sdy.sharding_constraint %322 <@mesh, [{}, {}, {"fsdp"}]> : tensor<16x32x512xf32>
    %324 = stablehlo.constant dense<-100> : tensor<i32>
    %325 = stablehlo.broadcast_in_dim %324, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %326 = stablehlo.compare NE, %313, %325, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
    %327 = stablehlo.iota dim = 2 : tensor<16x32x512xi32>
    %328 = stablehlo.reshape %313 : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %329 = stablehlo.broadcast_in_dim %328, dims = [0, 1, 2] : (tensor<16x32x1xi32>) -> tensor<16x32x512xi32>
    %330 = stablehlo.compare EQ, %327, %329, SIGNED : (tensor<16x32x512xi32>, tensor<16x32x512xi32>) -> tensor<16x32x512xi1>
    %331 = stablehlo.reduce(%323 init: %20) applies stablehlo.maximum across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %332 = stablehlo.reshape %331 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %333 = stablehlo.broadcast_in_dim %332, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %334 = stablehlo.subtract %323, %333 : tensor<16x32x512xf32>
    %335 = stablehlo.exponential %334 : tensor<16x32x512xf32>
    %336 = stablehlo.reduce(%335 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %337 = stablehlo.log %336 : tensor<16x32xf32>
    %338 = stablehlo.add %331, %337 : tensor<16x32xf32>
    %339 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<16x32x512xf32>
    %340 = stablehlo.select %330, %323, %339 : tensor<16x32x512xi1>, tensor<16x32x512xf32>
    %341 = stablehlo.reduce(%340 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %342 = stablehlo.subtract %338, %341 : tensor<16x32xf32>
    %343 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %344 = stablehlo.select %326, %342, %343 : tensor<16x32xi1>, tensor<16x32xf32>
    %345 = stablehlo.reshape %338 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %346 = stablehlo.broadcast_in_dim %345, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %347 = stablehlo.subtract %323, %346 : tensor<16x32x512xf32>
    %348 = stablehlo.exponential %347 : tensor<16x32x512xf32>
    %349 = stablehlo.convert %330 : (tensor<16x32x512xi1>) -> tensor<16x32x512xf32>
    %350 = stablehlo.subtract %348, %349 : tensor<16x32x512xf32>
    %351 = stablehlo.convert %326 : (tensor<16x32xi1>) -> tensor<16x32xf32>
    %352 = stablehlo.reshape %351 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %353 = stablehlo.broadcast_in_dim %352, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %354 = stablehlo.multiply %350, %353 : tensor<16x32x512xf32>
    %355 = sdy.manual_computation(%354, %320) in_shardings=[<@mesh, [{}, {}, {"fsdp"}]>, <@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%356: tensor<16x32x128xf32>, %357: tensor<16x32x64xf32>) {
      %358 = stablehlo.dot_general %356, %357, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x128xf32>, tensor<16x32x64xf32>) -> tensor<128x64xf32>
      sdy.return %358 : tensor<128x64xf32>
    } : (tensor<16x32x512xf32>, tensor<16x32x64xf32>) -> tensor<512x64xf32>
    %359 = sdy.manual_computation(%354, %321) in_shardings=[<@mesh, [{}, {}, {"fsdp"}]>, <@mesh, [{"fsdp"}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}, {}]>] manual_axes={"fsdp"} (%360: tensor<16x32x128xf32>, %361: tensor<128x64xf32>) {
      %362 = stablehlo.dot_general %360, %361, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x128xf32>, tensor<128x64xf32>) -> tensor<16x32x64xf32>
      %363 = "stablehlo.reduce_scatter"(%362) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
      ^bb0(%364: tensor<f32>, %365: tensor<f32>):
        %366 = stablehlo.add %364, %365 : tensor<f32>
        stablehlo.return %366 : tensor<f32>
      }) : (tensor<16x32x64xf32>) -> tensor<4x32x64xf32>
      sdy.return %363 : tensor<4x32x64xf32>
    } : (tensor<16x32x512xf32>, tensor<512x64xf32>) -> tensor<16x32x64xf32>
    %367 = stablehlo.reduce(%344 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %368 = stablehlo.maximum %318, %19 : tensor<f32>
    %369 = stablehlo.divide %19, %368 : tensor<f32>
    %370 = stablehlo.broadcast_in_dim %369, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
    %371 = stablehlo.multiply %359, %370 : tensor<16x32x64xf32>
    %372 = stablehlo.broadcast_in_dim %369, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %373 = stablehlo.multiply %355, %372 : tensor<512x64xf32>
    %374 = stablehlo.broadcast_in_dim %306, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %375 = stablehlo.multiply %371, %374 : tensor<16x32x64xf32>
    %376 = stablehlo.multiply %371, %303 : tensor<16x32x64xf32>
    %377 = stablehlo.reduce(%376 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %378 = stablehlo.reshape %377 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %379 = stablehlo.reshape %378 : (tensor<1x1x64xf32>) -> tensor<64xf32>
    %380 = stablehlo.broadcast_in_dim %301, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %381 = stablehlo.divide %375, %380 : tensor<16x32x64xf32>
    %382 = stablehlo.multiply %380, %380 : tensor<16x32x64xf32>
    %383 = stablehlo.divide %26#1, %382 : tensor<16x32x64xf32>
    %384 = stablehlo.multiply %375, %383 : tensor<16x32x64xf32>
    %385 = stablehlo.negate %384 : tensor<16x32x64xf32>
    %386 = stablehlo.reduce(%385 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %387 = stablehlo.reshape %386 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %388 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %389 = stablehlo.divide %388, %301 : tensor<16x32x1xf32>
    %390 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %391 = stablehlo.multiply %389, %390 : tensor<16x32x1xf32>
    %392 = stablehlo.multiply %387, %391 : tensor<16x32x1xf32>
    %393 = stablehlo.reshape %392 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
    %394 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %395 = stablehlo.multiply %393, %394 : tensor<16x32xf32>
    %396 = stablehlo.reshape %395 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %397 = stablehlo.broadcast_in_dim %396, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %398 = stablehlo.multiply %397, %26#1 : tensor<16x32x64xf32>
    %399 = stablehlo.multiply %397, %26#1 : tensor<16x32x64xf32>
    %400 = stablehlo.add %381, %398 : tensor<16x32x64xf32>
    %401 = stablehlo.add %400, %399 : tensor<16x32x64xf32>
    %402 = stablehlo.constant dense<0> : tensor<i32>
    %403 = stablehlo.constant dense<0.0> : tensor<f32>
    %404 = stablehlo.broadcast_in_dim %403, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %405 = stablehlo.constant dense<0.0> : tensor<f32>
    %406 = stablehlo.broadcast_in_dim %405, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %407 = sdy.sharding_constraint %406 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x96x64xf32>
    %408 = stablehlo.constant dense<0.0> : tensor<f32>
    %409 = stablehlo.broadcast_in_dim %408, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %410 = stablehlo.constant dense<0.0> : tensor<f32>
    %411 = stablehlo.broadcast_in_dim %410, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %412 = sdy.sharding_constraint %411 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
    %413 = stablehlo.constant dense<0.0> : tensor<f32>
    %414 = stablehlo.broadcast_in_dim %413, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %415 = stablehlo.constant dense<0.0> : tensor<f32>
    %416 = stablehlo.broadcast_in_dim %415, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %417 = sdy.sharding_constraint %416 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
    %418 = stablehlo.constant dense<0.0> : tensor<f32>
    %419 = stablehlo.broadcast_in_dim %418, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %420 = sdy.sharding_constraint %419 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x96xf32>
    %421 = stablehlo.constant dense<0.0> : tensor<f32>
    %422 = stablehlo.broadcast_in_dim %421, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %423 = stablehlo.constant dense<0.0> : tensor<f32>
    %424 = stablehlo.broadcast_in_dim %423, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %425 = stablehlo.constant dense<0.0> : tensor<f32>
    %426 = stablehlo.broadcast_in_dim %425, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %427 = sdy.sharding_constraint %426 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %428 = stablehlo.constant dense<0.0> : tensor<f32>
    %429 = stablehlo.broadcast_in_dim %428, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %430 = sdy.sharding_constraint %429 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %431 = stablehlo.constant dense<0.0> : tensor<f32>
    %432 = stablehlo.broadcast_in_dim %431, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %433 = sdy.sharding_constraint %432 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %434 = stablehlo.constant dense<0.0> : tensor<f32>
    %435 = stablehlo.broadcast_in_dim %434, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %436:32 = stablehlo.while(%437 = %402, %438 = %401, %439 = %404, %440 = %407, %441 = %409, %442 = %412, %443 = %414, %444 = %417, %445 = %420, %446 = %422, %447 = %424, %448 = %427, %449 = %430, %450 = %433, %451 = %435, %452 = %arg6, %453 = %arg9, %454 = %arg12, %455 = %arg15, %456 = %arg18, %457 = %arg21, %458 = %arg24, %459 = %arg27, %460 = %arg30, %461 = %arg33, %462 = %arg36, %463 = %arg39, %464 = %arg42, %465 = %26#2, %466 = %arg47, %467 = %14, %468 = %15) : tensor<i32>, tensor<16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    cond {
      %469 = stablehlo.constant dense<2> : tensor<i32>
      %470 = stablehlo.compare LT, %437, %469, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %470 : tensor<i1>
    } do {
      %471 = stablehlo.constant dense<0> : tensor<i32>
      %472 = stablehlo.constant dense<1> : tensor<i32>
      %473 = stablehlo.subtract %472, %437 : tensor<i32>
      %474 = stablehlo.dynamic_slice %452, %473, %471, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %475 = stablehlo.reshape %474 : (tensor<1x64xf32>) -> tensor<64xf32>
      %476 = stablehlo.dynamic_slice %453, %473, %471, %471, sizes = [1, 96, 64] : (tensor<2x96x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x64xf32>
      %477 = stablehlo.reshape %476 : (tensor<1x96x64xf32>) -> tensor<96x64xf32>
      %478 = sdy.sharding_constraint %477 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %479 = stablehlo.dynamic_slice %454, %473, %471, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %480 = stablehlo.reshape %479 : (tensor<1x24xf32>) -> tensor<24xf32>
      %481 = stablehlo.dynamic_slice %455, %473, %471, %471, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %482 = stablehlo.reshape %481 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %483 = sdy.sharding_constraint %482 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %484 = stablehlo.dynamic_slice %456, %473, %471, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %485 = stablehlo.reshape %484 : (tensor<1x24xf32>) -> tensor<24xf32>
      %486 = stablehlo.dynamic_slice %457, %473, %471, %471, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %487 = stablehlo.reshape %486 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %488 = sdy.sharding_constraint %487 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %489 = stablehlo.dynamic_slice %458, %473, %471, %471, sizes = [1, 64, 96] : (tensor<2x64x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x96xf32>
      %490 = stablehlo.reshape %489 : (tensor<1x64x96xf32>) -> tensor<64x96xf32>
      %491 = sdy.sharding_constraint %490 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %492 = stablehlo.dynamic_slice %459, %473, %471, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %493 = stablehlo.reshape %492 : (tensor<1x64xf32>) -> tensor<64xf32>
      %494 = stablehlo.dynamic_slice %460, %473, %471, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %495 = stablehlo.reshape %494 : (tensor<1x64xf32>) -> tensor<64xf32>
      %496 = stablehlo.dynamic_slice %461, %473, %471, %471, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %497 = stablehlo.reshape %496 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %498 = sdy.sharding_constraint %497 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %499 = stablehlo.dynamic_slice %462, %473, %471, %471, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %500 = stablehlo.reshape %499 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %501 = sdy.sharding_constraint %500 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %502 = stablehlo.dynamic_slice %463, %473, %471, %471, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %503 = stablehlo.reshape %502 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %504 = sdy.sharding_constraint %503 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %505 = stablehlo.dynamic_slice %464, %473, %471, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %506 = stablehlo.reshape %505 : (tensor<1x64xf32>) -> tensor<64xf32>
      %507 = stablehlo.dynamic_slice %465, %473, %471, %471, %471, sizes = [1, 16, 32, 64] : (tensor<2x16x32x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x32x64xf32>
      %508 = stablehlo.reshape %507 : (tensor<1x16x32x64xf32>) -> tensor<16x32x64xf32>
      %509 = stablehlo.constant dense<1.5625e-02> : tensor<f32>
      %510 = stablehlo.constant dense<1.0e-06> : tensor<f32>
      %511 = stablehlo.constant dense<1.0> : tensor<f32>
      %512 = stablehlo.constant dense<4.1666668e-02> : tensor<f32>
      %513 = stablehlo.constant dense<16> : tensor<i32>
      %514 = stablehlo.constant dense<0> : tensor<i32>
      %515 = stablehlo.constant dense<1.7677669e-01> : tensor<f32>
      %516 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
      %517 = stablehlo.constant dense<4.4715e-02> : tensor<f32>
      %518 = stablehlo.constant dense<7.978846e-01> : tensor<f32>
      %519 = stablehlo.constant dense<5.0e-01> : tensor<f32>
      %520 = stablehlo.constant dense<1.34145e-01> : tensor<f32>
      %521 = stablehlo.constant dense<0.0> : tensor<f32>
      %522:18 = stablehlo.optimization_barrier %508, %466, %467, %468, %475, %478, %480, %483, %485, %488, %491, %493, %495, %498, %501, %504, %506, %438 : tensor<16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>, tensor<64xf32>, tensor<96x64xf32>, tensor<24xf32>, tensor<48x64xf32>, tensor<24xf32>, tensor<48x64xf32>, tensor<64x96xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<16x32x64xf32>
      %523 = stablehlo.multiply %522#0, %522#0 : tensor<16x32x64xf32>
      %524 = stablehlo.constant dense<0.0> : tensor<f32>
      %525 = stablehlo.reduce(%523 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %526 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %527 = stablehlo.multiply %525, %526 : tensor<16x32xf32>
      %528 = stablehlo.reshape %527 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %529 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %530 = stablehlo.add %528, %529 : tensor<16x32x1xf32>
      %531 = stablehlo.sqrt %530 : tensor<16x32x1xf32>
      %532 = stablehlo.broadcast_in_dim %531, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %533 = stablehlo.divide %522#0, %532 : tensor<16x32x64xf32>
      %534 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %535 = stablehlo.add %534, %522#4 : tensor<64xf32>
      %536 = stablehlo.reshape %535 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %537 = stablehlo.broadcast_in_dim %536, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %538 = stablehlo.multiply %533, %537 : tensor<16x32x64xf32>
      %539 = sdy.sharding_constraint %522#5 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %540 = sdy.sharding_constraint %539 <@mesh, [{}, {}]> : tensor<96x64xf32>
      %541 = stablehlo.dot_general %538, %540, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<96x64xf32>) -> tensor<16x32x96xf32>
      %542 = stablehlo.reshape %541 : (tensor<16x32x96xf32>) -> tensor<16x32x4x24xf32>
      %543 = stablehlo.multiply %542, %542 : tensor<16x32x4x24xf32>
      %544 = stablehlo.reduce(%543 init: %524) applies stablehlo.add across dimensions = [3] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<16x32x4xf32>
      %545 = stablehlo.broadcast_in_dim %512, dims = [] : (tensor<f32>) -> tensor<16x32x4xf32>
      %546 = stablehlo.multiply %544, %545 : tensor<16x32x4xf32>
      %547 = stablehlo.reshape %546 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %548 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %549 = stablehlo.add %547, %548 : tensor<16x32x4x1xf32>
      %550 = stablehlo.sqrt %549 : tensor<16x32x4x1xf32>
      %551 = stablehlo.broadcast_in_dim %550, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %552 = stablehlo.divide %542, %551 : tensor<16x32x4x24xf32>
      %553 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %554 = stablehlo.add %553, %522#6 : tensor<24xf32>
      %555 = stablehlo.reshape %554 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %556 = stablehlo.broadcast_in_dim %555, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x4x24xf32>
      %557 = stablehlo.multiply %552, %556 : tensor<16x32x4x24xf32>
      %558 = stablehlo.slice %557 [0:16, 0:32, 0:4, 0:12] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %559 = stablehlo.slice %557 [0:16, 0:32, 0:4, 12:24] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %560 = stablehlo.reshape %522#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %561 = stablehlo.reshape %522#3 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %562 = stablehlo.broadcast_in_dim %560, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %563 = stablehlo.multiply %558, %562 : tensor<16x32x4x12xf32>
      %564 = stablehlo.broadcast_in_dim %561, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %565 = stablehlo.multiply %559, %564 : tensor<16x32x4x12xf32>
      %566 = stablehlo.subtract %563, %565 : tensor<16x32x4x12xf32>
      %567 = stablehlo.broadcast_in_dim %560, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %568 = stablehlo.multiply %559, %567 : tensor<16x32x4x12xf32>
      %569 = stablehlo.broadcast_in_dim %561, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %570 = stablehlo.multiply %558, %569 : tensor<16x32x4x12xf32>
      %571 = stablehlo.add %568, %570 : tensor<16x32x4x12xf32>
      %572 = stablehlo.concatenate %566, %571, dim = 3 : (tensor<16x32x4x12xf32>, tensor<16x32x4x12xf32>) -> tensor<16x32x4x24xf32>
      %573 = sdy.sharding_constraint %522#7 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %574 = sdy.sharding_constraint %573 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %575 = stablehlo.dot_general %538, %574, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %576 = stablehlo.reshape %575 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %577 = sdy.sharding_constraint %522#9 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %578 = sdy.sharding_constraint %577 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %579 = stablehlo.dot_general %538, %578, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %580 = stablehlo.reshape %579 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %581 = stablehlo.multiply %576, %576 : tensor<16x32x2x24xf32>
      %582 = stablehlo.reduce(%581 init: %524) applies stablehlo.add across dimensions = [3] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<16x32x2xf32>
      %583 = stablehlo.broadcast_in_dim %512, dims = [] : (tensor<f32>) -> tensor<16x32x2xf32>
      %584 = stablehlo.multiply %582, %583 : tensor<16x32x2xf32>
      %585 = stablehlo.reshape %584 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %586 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %587 = stablehlo.add %585, %586 : tensor<16x32x2x1xf32>
      %588 = stablehlo.sqrt %587 : tensor<16x32x2x1xf32>
      %589 = stablehlo.broadcast_in_dim %588, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %590 = stablehlo.divide %576, %589 : tensor<16x32x2x24xf32>
      %591 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %592 = stablehlo.add %591, %522#8 : tensor<24xf32>
      %593 = stablehlo.reshape %592 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %594 = stablehlo.broadcast_in_dim %593, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x2x24xf32>
      %595 = stablehlo.multiply %590, %594 : tensor<16x32x2x24xf32>
      %596 = stablehlo.slice %595 [0:16, 0:32, 0:2, 0:12] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %597 = stablehlo.slice %595 [0:16, 0:32, 0:2, 12:24] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %598 = stablehlo.reshape %522#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %599 = stablehlo.reshape %522#3 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %600 = stablehlo.broadcast_in_dim %598, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %601 = stablehlo.multiply %596, %600 : tensor<16x32x2x12xf32>
      %602 = stablehlo.broadcast_in_dim %599, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %603 = stablehlo.multiply %597, %602 : tensor<16x32x2x12xf32>
      %604 = stablehlo.subtract %601, %603 : tensor<16x32x2x12xf32>
      %605 = stablehlo.broadcast_in_dim %598, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %606 = stablehlo.multiply %597, %605 : tensor<16x32x2x12xf32>
      %607 = stablehlo.broadcast_in_dim %599, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %608 = stablehlo.multiply %596, %607 : tensor<16x32x2x12xf32>
      %609 = stablehlo.add %606, %608 : tensor<16x32x2x12xf32>
      %610 = stablehlo.concatenate %604, %609, dim = 3 : (tensor<16x32x2x12xf32>, tensor<16x32x2x12xf32>) -> tensor<16x32x2x24xf32>
      %611 = stablehlo.reshape %572 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %612 = stablehlo.dot_general %611, %610, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %613 = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %614 = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %615 = stablehlo.compare LE, %614, %613, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %616 = stablehlo.subtract %613, %614 : tensor<32x32xi32>
      %617 = stablehlo.broadcast_in_dim %513, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
      %618 = stablehlo.compare LT, %616, %617, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %619 = stablehlo.and %615, %618 : tensor<32x32xi1>
      %620 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
      %621 = stablehlo.compare NE, %522#1, %620, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
      %622 = stablehlo.reshape %619 : (tensor<32x32xi1>) -> tensor<1x1x32x1x32xi1>
      %623 = stablehlo.broadcast_in_dim %622, dims = [0, 1, 2, 3, 4] : (tensor<1x1x32x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %624 = stablehlo.reshape %621 : (tensor<16x32xi1>) -> tensor<16x1x1x1x32xi1>
      %625 = stablehlo.broadcast_in_dim %624, dims = [0, 1, 2, 3, 4] : (tensor<16x1x1x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %626 = stablehlo.and %623, %625 : tensor<16x2x32x2x32xi1>
      %627 = stablehlo.broadcast_in_dim %515, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %628 = stablehlo.multiply %612, %627 : tensor<16x2x32x2x32xf32>
      %629 = stablehlo.broadcast_in_dim %516, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %630 = stablehlo.select %626, %628, %629 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %631 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %632 = stablehlo.reduce(%630 init: %631) applies stablehlo.maximum across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %633 = stablehlo.reshape %632 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %634 = stablehlo.broadcast_in_dim %633, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %635 = stablehlo.subtract %630, %634 : tensor<16x2x32x2x32xf32>
      %636 = stablehlo.exponential %635 : tensor<16x2x32x2x32xf32>
      %637 = stablehlo.reduce(%636 init: %524) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %638 = stablehlo.reshape %637 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %639 = stablehlo.broadcast_in_dim %638, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %640 = stablehlo.divide %636, %639 : tensor<16x2x32x2x32xf32>
      %641 = stablehlo.dot_general %640, %580, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x24xf32>
      %642 = stablehlo.transpose %641, dims = [0, 2, 1, 3, 4] : (tensor<16x2x32x2x24xf32>) -> tensor<16x32x2x2x24xf32>
      %643 = stablehlo.reshape %642 : (tensor<16x32x2x2x24xf32>) -> tensor<16x32x96xf32>
      %644 = sdy.sharding_constraint %522#10 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %645 = sdy.sharding_constraint %644 <@mesh, [{}, {}]> : tensor<64x96xf32>
      %646 = stablehlo.dot_general %643, %645, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x96xf32>, tensor<64x96xf32>) -> tensor<16x32x64xf32>
      %647 = stablehlo.multiply %646, %646 : tensor<16x32x64xf32>
      %648 = stablehlo.reduce(%647 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %649 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %650 = stablehlo.multiply %648, %649 : tensor<16x32xf32>
      %651 = stablehlo.reshape %650 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %652 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %653 = stablehlo.add %651, %652 : tensor<16x32x1xf32>
      %654 = stablehlo.sqrt %653 : tensor<16x32x1xf32>
      %655 = stablehlo.broadcast_in_dim %654, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %656 = stablehlo.divide %646, %655 : tensor<16x32x64xf32>
      %657 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %658 = stablehlo.add %657, %522#11 : tensor<64xf32>
      %659 = stablehlo.reshape %658 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %660 = stablehlo.broadcast_in_dim %659, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %661 = stablehlo.multiply %656, %660 : tensor<16x32x64xf32>
      %662 = stablehlo.add %522#0, %661 : tensor<16x32x64xf32>
      %663 = stablehlo.multiply %662, %662 : tensor<16x32x64xf32>
      %664 = stablehlo.reduce(%663 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %665 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %666 = stablehlo.multiply %664, %665 : tensor<16x32xf32>
      %667 = stablehlo.reshape %666 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %668 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %669 = stablehlo.add %667, %668 : tensor<16x32x1xf32>
      %670 = stablehlo.sqrt %669 : tensor<16x32x1xf32>
      %671 = stablehlo.broadcast_in_dim %670, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %672 = stablehlo.divide %662, %671 : tensor<16x32x64xf32>
      %673 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %674 = stablehlo.add %673, %522#12 : tensor<64xf32>
      %675 = stablehlo.reshape %674 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %676 = stablehlo.broadcast_in_dim %675, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %677 = stablehlo.multiply %672, %676 : tensor<16x32x64xf32>
      %678 = sdy.sharding_constraint %522#13 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %679 = sdy.sharding_constraint %678 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %680 = stablehlo.dot_general %677, %679, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %681 = sdy.sharding_constraint %522#14 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %682 = sdy.sharding_constraint %681 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %683 = stablehlo.dot_general %677, %682, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %684 = stablehlo.multiply %680, %680 : tensor<16x32x64xf32>
      %685 = stablehlo.broadcast_in_dim %517, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %686 = stablehlo.multiply %684, %685 : tensor<16x32x64xf32>
      %687 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %688 = stablehlo.add %687, %686 : tensor<16x32x64xf32>
      %689 = stablehlo.multiply %680, %688 : tensor<16x32x64xf32>
      %690 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %691 = stablehlo.multiply %689, %690 : tensor<16x32x64xf32>
      %692 = stablehlo.tanh %691 : tensor<16x32x64xf32>
      %693 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %694 = stablehlo.add %693, %692 : tensor<16x32x64xf32>
      %695 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %696 = stablehlo.multiply %694, %695 : tensor<16x32x64xf32>
      %697 = stablehlo.multiply %680, %696 : tensor<16x32x64xf32>
      %698 = stablehlo.multiply %697, %683 : tensor<16x32x64xf32>
      %699 = sdy.sharding_constraint %522#15 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %700 = sdy.sharding_constraint %699 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %701 = stablehlo.dot_general %698, %700, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %702 = stablehlo.multiply %701, %701 : tensor<16x32x64xf32>
      %703 = stablehlo.reduce(%702 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %704 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %705 = stablehlo.multiply %703, %704 : tensor<16x32xf32>
      %706 = stablehlo.reshape %705 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %707 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %708 = stablehlo.add %706, %707 : tensor<16x32x1xf32>
      %709 = stablehlo.sqrt %708 : tensor<16x32x1xf32>
      %710 = stablehlo.broadcast_in_dim %709, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %711 = stablehlo.divide %701, %710 : tensor<16x32x64xf32>
      %712 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %713 = stablehlo.add %712, %522#16 : tensor<64xf32>
      %714 = stablehlo.reshape %713 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %715 = sdy.sharding_constraint %522#17 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %716 = stablehlo.broadcast_in_dim %714, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %717 = stablehlo.multiply %715, %716 : tensor<16x32x64xf32>
      %718 = stablehlo.multiply %715, %711 : tensor<16x32x64xf32>
      %719 = stablehlo.reduce(%718 init: %524) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %720 = stablehlo.reshape %719 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %721 = stablehlo.reshape %720 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %722 = stablehlo.broadcast_in_dim %709, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %723 = stablehlo.divide %717, %722 : tensor<16x32x64xf32>
      %724 = stablehlo.multiply %722, %722 : tensor<16x32x64xf32>
      %725 = stablehlo.divide %701, %724 : tensor<16x32x64xf32>
      %726 = stablehlo.multiply %717, %725 : tensor<16x32x64xf32>
      %727 = stablehlo.negate %726 : tensor<16x32x64xf32>
      %728 = stablehlo.reduce(%727 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %729 = stablehlo.reshape %728 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %730 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %731 = stablehlo.divide %730, %709 : tensor<16x32x1xf32>
      %732 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %733 = stablehlo.multiply %731, %732 : tensor<16x32x1xf32>
      %734 = stablehlo.multiply %729, %733 : tensor<16x32x1xf32>
      %735 = stablehlo.reshape %734 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %736 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %737 = stablehlo.multiply %735, %736 : tensor<16x32xf32>
      %738 = stablehlo.reshape %737 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %739 = stablehlo.broadcast_in_dim %738, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %740 = stablehlo.multiply %739, %701 : tensor<16x32x64xf32>
      %741 = stablehlo.multiply %739, %701 : tensor<16x32x64xf32>
      %742 = stablehlo.add %723, %740 : tensor<16x32x64xf32>
      %743 = stablehlo.add %742, %741 : tensor<16x32x64xf32>
      %744 = stablehlo.dot_general %743, %700, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %745 = sdy.manual_computation(%743, %698) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%746: tensor<4x32x64xf32>, %747: tensor<4x32x64xf32>) {
        %748 = stablehlo.dot_general %746, %747, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %749 = "stablehlo.reduce_scatter"(%748) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%750: tensor<f32>, %751: tensor<f32>):
          %752 = stablehlo.add %750, %751 : tensor<f32>
          stablehlo.return %752 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %749 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %753 = stablehlo.multiply %680, %680 : tensor<16x32x64xf32>
      %754 = stablehlo.broadcast_in_dim %517, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %755 = stablehlo.multiply %753, %754 : tensor<16x32x64xf32>
      %756 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %757 = stablehlo.add %756, %755 : tensor<16x32x64xf32>
      %758 = stablehlo.multiply %680, %757 : tensor<16x32x64xf32>
      %759 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %760 = stablehlo.multiply %758, %759 : tensor<16x32x64xf32>
      %761 = stablehlo.tanh %760 : tensor<16x32x64xf32>
      %762 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %763 = stablehlo.add %762, %761 : tensor<16x32x64xf32>
      %764 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %765 = stablehlo.multiply %763, %764 : tensor<16x32x64xf32>
      %766 = stablehlo.multiply %680, %765 : tensor<16x32x64xf32>
      %767 = stablehlo.broadcast_in_dim %520, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %768 = stablehlo.multiply %753, %767 : tensor<16x32x64xf32>
      %769 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %770 = stablehlo.add %769, %768 : tensor<16x32x64xf32>
      %771 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %772 = stablehlo.multiply %770, %771 : tensor<16x32x64xf32>
      %773 = stablehlo.multiply %761, %761 : tensor<16x32x64xf32>
      %774 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %775 = stablehlo.subtract %774, %773 : tensor<16x32x64xf32>
      %776 = stablehlo.multiply %680, %775 : tensor<16x32x64xf32>
      %777 = stablehlo.multiply %776, %772 : tensor<16x32x64xf32>
      %778 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %779 = stablehlo.multiply %777, %778 : tensor<16x32x64xf32>
      %780 = stablehlo.add %765, %779 : tensor<16x32x64xf32>
      %781 = stablehlo.multiply %744, %683 : tensor<16x32x64xf32>
      %782 = stablehlo.multiply %781, %780 : tensor<16x32x64xf32>
      %783 = stablehlo.multiply %744, %766 : tensor<16x32x64xf32>
      %784 = stablehlo.dot_general %783, %682, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %785 = sdy.manual_computation(%783, %677) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%786: tensor<4x32x64xf32>, %787: tensor<4x32x64xf32>) {
        %788 = stablehlo.dot_general %786, %787, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %789 = "stablehlo.reduce_scatter"(%788) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%790: tensor<f32>, %791: tensor<f32>):
          %792 = stablehlo.add %790, %791 : tensor<f32>
          stablehlo.return %792 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %789 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %793 = stablehlo.dot_general %782, %679, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %794 = sdy.manual_computation(%782, %677) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%795: tensor<4x32x64xf32>, %796: tensor<4x32x64xf32>) {
        %797 = stablehlo.dot_general %795, %796, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %798 = "stablehlo.reduce_scatter"(%797) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%799: tensor<f32>, %800: tensor<f32>):
          %801 = stablehlo.add %799, %800 : tensor<f32>
          stablehlo.return %801 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %798 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %802 = stablehlo.add %784, %793 : tensor<16x32x64xf32>
      %803 = stablehlo.broadcast_in_dim %675, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %804 = stablehlo.multiply %802, %803 : tensor<16x32x64xf32>
      %805 = stablehlo.multiply %802, %672 : tensor<16x32x64xf32>
      %806 = stablehlo.reduce(%805 init: %524) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %807 = stablehlo.reshape %806 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %808 = stablehlo.reshape %807 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %809 = stablehlo.broadcast_in_dim %670, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %810 = stablehlo.divide %804, %809 : tensor<16x32x64xf32>
      %811 = stablehlo.multiply %809, %809 : tensor<16x32x64xf32>
      %812 = stablehlo.divide %662, %811 : tensor<16x32x64xf32>
      %813 = stablehlo.multiply %804, %812 : tensor<16x32x64xf32>
      %814 = stablehlo.negate %813 : tensor<16x32x64xf32>
      %815 = stablehlo.reduce(%814 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %816 = stablehlo.reshape %815 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %817 = stablehlo.add %715, %810 : tensor<16x32x64xf32>
      %818 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %819 = stablehlo.divide %818, %670 : tensor<16x32x1xf32>
      %820 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %821 = stablehlo.multiply %819, %820 : tensor<16x32x1xf32>
      %822 = stablehlo.multiply %816, %821 : tensor<16x32x1xf32>
      %823 = stablehlo.reshape %822 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %824 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %825 = stablehlo.multiply %823, %824 : tensor<16x32xf32>
      %826 = stablehlo.reshape %825 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %827 = stablehlo.broadcast_in_dim %826, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %828 = stablehlo.multiply %827, %662 : tensor<16x32x64xf32>
      %829 = stablehlo.multiply %827, %662 : tensor<16x32x64xf32>
      %830 = stablehlo.add %817, %828 : tensor<16x32x64xf32>
      %831 = stablehlo.add %830, %829 : tensor<16x32x64xf32>
      %832 = stablehlo.broadcast_in_dim %659, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %833 = stablehlo.multiply %831, %832 : tensor<16x32x64xf32>
      %834 = stablehlo.multiply %831, %656 : tensor<16x32x64xf32>
      %835 = stablehlo.reduce(%834 init: %524) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %836 = stablehlo.reshape %835 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %837 = stablehlo.reshape %836 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %838 = stablehlo.broadcast_in_dim %654, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %839 = stablehlo.divide %833, %838 : tensor<16x32x64xf32>
      %840 = stablehlo.multiply %838, %838 : tensor<16x32x64xf32>
      %841 = stablehlo.divide %646, %840 : tensor<16x32x64xf32>
      %842 = stablehlo.multiply %833, %841 : tensor<16x32x64xf32>
      %843 = stablehlo.negate %842 : tensor<16x32x64xf32>
      %844 = stablehlo.reduce(%843 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %845 = stablehlo.reshape %844 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %846 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %847 = stablehlo.divide %846, %654 : tensor<16x32x1xf32>
      %848 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %849 = stablehlo.multiply %847, %848 : tensor<16x32x1xf32>
      %850 = stablehlo.multiply %845, %849 : tensor<16x32x1xf32>
      %851 = stablehlo.reshape %850 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %852 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %853 = stablehlo.multiply %851, %852 : tensor<16x32xf32>
      %854 = stablehlo.reshape %853 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %855 = stablehlo.broadcast_in_dim %854, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %856 = stablehlo.multiply %855, %646 : tensor<16x32x64xf32>
      %857 = stablehlo.multiply %855, %646 : tensor<16x32x64xf32>
      %858 = stablehlo.add %839, %856 : tensor<16x32x64xf32>
      %859 = stablehlo.add %858, %857 : tensor<16x32x64xf32>
      %860 = stablehlo.dot_general %859, %645, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x96xf32>) -> tensor<16x32x96xf32>
      %861 = sdy.manual_computation(%859, %643) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%862: tensor<4x32x64xf32>, %863: tensor<4x32x96xf32>) {
        %864 = stablehlo.dot_general %862, %863, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x96xf32>) -> tensor<64x96xf32>
        %865 = "stablehlo.reduce_scatter"(%864) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%866: tensor<f32>, %867: tensor<f32>):
          %868 = stablehlo.add %866, %867 : tensor<f32>
          stablehlo.return %868 : tensor<f32>
        }) : (tensor<64x96xf32>) -> tensor<16x96xf32>
        sdy.return %865 : tensor<16x96xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x96xf32>) -> tensor<64x96xf32>
      %869 = stablehlo.reshape %572 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %870 = stablehlo.dot_general %869, %610, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %871 = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %872 = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %873 = stablehlo.compare LE, %872, %871, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %874 = stablehlo.subtract %871, %872 : tensor<32x32xi32>
      %875 = stablehlo.constant dense<16> : tensor<i32>
      %876 = stablehlo.broadcast_in_dim %875, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
      %877 = stablehlo.compare LT, %874, %876, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %878 = stablehlo.and %873, %877 : tensor<32x32xi1>
      %879 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
      %880 = stablehlo.compare NE, %522#1, %879, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
      %881 = stablehlo.reshape %878 : (tensor<32x32xi1>) -> tensor<1x1x32x1x32xi1>
      %882 = stablehlo.broadcast_in_dim %881, dims = [0, 1, 2, 3, 4] : (tensor<1x1x32x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %883 = stablehlo.reshape %880 : (tensor<16x32xi1>) -> tensor<16x1x1x1x32xi1>
      %884 = stablehlo.broadcast_in_dim %883, dims = [0, 1, 2, 3, 4] : (tensor<16x1x1x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %885 = stablehlo.and %882, %884 : tensor<16x2x32x2x32xi1>
      %886 = stablehlo.broadcast_in_dim %515, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %887 = stablehlo.multiply %870, %886 : tensor<16x2x32x2x32xf32>
      %888 = stablehlo.broadcast_in_dim %516, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %889 = stablehlo.select %885, %887, %888 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %890 = stablehlo.reduce(%889 init: %631) applies stablehlo.maximum across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %891 = stablehlo.reshape %890 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %892 = stablehlo.broadcast_in_dim %891, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %893 = stablehlo.subtract %889, %892 : tensor<16x2x32x2x32xf32>
      %894 = stablehlo.exponential %893 : tensor<16x2x32x2x32xf32>
      %895 = stablehlo.reduce(%894 init: %524) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %896 = stablehlo.reshape %895 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %897 = stablehlo.broadcast_in_dim %896, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %898 = stablehlo.divide %894, %897 : tensor<16x2x32x2x32xf32>
      %899 = stablehlo.reshape %860 : (tensor<16x32x96xf32>) -> tensor<16x32x2x2x24xf32>
      %900 = stablehlo.dot_general %898, %899, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x2x24xf32>) -> tensor<16x2x32x24xf32>
      %901 = stablehlo.transpose %900, dims = [0, 2, 1, 3] : (tensor<16x2x32x24xf32>) -> tensor<16x32x2x24xf32>
      %902 = stablehlo.dot_general %899, %580, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %903 = stablehlo.multiply %902, %898 : tensor<16x2x32x2x32xf32>
      %904 = stablehlo.reduce(%903 init: %524) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %905 = stablehlo.reshape %904 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %906 = stablehlo.broadcast_in_dim %905, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %907 = stablehlo.subtract %902, %906 : tensor<16x2x32x2x32xf32>
      %908 = stablehlo.multiply %898, %907 : tensor<16x2x32x2x32xf32>
      %909 = stablehlo.broadcast_in_dim %515, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %910 = stablehlo.multiply %908, %909 : tensor<16x2x32x2x32xf32>
      %911 = stablehlo.broadcast_in_dim %521, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %912 = stablehlo.select %885, %910, %911 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %913 = stablehlo.dot_general %912, %610, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x24xf32>
      %914 = stablehlo.transpose %913, dims = [0, 2, 1, 3, 4] : (tensor<16x2x32x2x24xf32>) -> tensor<16x32x2x2x24xf32>
      %915 = stablehlo.reshape %914 : (tensor<16x32x2x2x24xf32>) -> tensor<16x32x4x24xf32>
      %916 = stablehlo.reshape %572 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %917 = stablehlo.dot_general %912, %916, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x2x24xf32>) -> tensor<16x2x32x24xf32>
      %918 = stablehlo.transpose %917, dims = [0, 2, 1, 3] : (tensor<16x2x32x24xf32>) -> tensor<16x32x2x24xf32>
      %919 = stablehlo.negate %522#3 : tensor<32x12xf32>
      %920 = stablehlo.slice %918 [0:16, 0:32, 0:2, 0:12] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %921 = stablehlo.slice %918 [0:16, 0:32, 0:2, 12:24] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %922 = stablehlo.reshape %522#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %923 = stablehlo.reshape %919 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %924 = stablehlo.broadcast_in_dim %922, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %925 = stablehlo.multiply %920, %924 : tensor<16x32x2x12xf32>
      %926 = stablehlo.broadcast_in_dim %923, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %927 = stablehlo.multiply %921, %926 : tensor<16x32x2x12xf32>
      %928 = stablehlo.subtract %925, %927 : tensor<16x32x2x12xf32>
      %929 = stablehlo.broadcast_in_dim %922, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %930 = stablehlo.multiply %921, %929 : tensor<16x32x2x12xf32>
      %931 = stablehlo.broadcast_in_dim %923, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %932 = stablehlo.multiply %920, %931 : tensor<16x32x2x12xf32>
      %933 = stablehlo.add %930, %932 : tensor<16x32x2x12xf32>
      %934 = stablehlo.concatenate %928, %933, dim = 3 : (tensor<16x32x2x12xf32>, tensor<16x32x2x12xf32>) -> tensor<16x32x2x24xf32>
      %935 = stablehlo.broadcast_in_dim %593, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x2x24xf32>
      %936 = stablehlo.multiply %934, %935 : tensor<16x32x2x24xf32>
      %937 = stablehlo.multiply %934, %590 : tensor<16x32x2x24xf32>
      %938 = stablehlo.reduce(%937 init: %524) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<24xf32>
      %939 = stablehlo.reshape %938 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %940 = stablehlo.reshape %939 : (tensor<1x1x1x24xf32>) -> tensor<24xf32>
      %941 = stablehlo.broadcast_in_dim %588, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %942 = stablehlo.divide %936, %941 : tensor<16x32x2x24xf32>
      %943 = stablehlo.multiply %941, %941 : tensor<16x32x2x24xf32>
      %944 = stablehlo.divide %576, %943 : tensor<16x32x2x24xf32>
      %945 = stablehlo.multiply %936, %944 : tensor<16x32x2x24xf32>
      %946 = stablehlo.negate %945 : tensor<16x32x2x24xf32>
      %947 = stablehlo.reduce(%946 init: %524) applies stablehlo.add across dimensions = [3] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<16x32x2xf32>
      %948 = stablehlo.reshape %947 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %949 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %950 = stablehlo.divide %949, %588 : tensor<16x32x2x1xf32>
      %951 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %952 = stablehlo.multiply %950, %951 : tensor<16x32x2x1xf32>
      %953 = stablehlo.multiply %948, %952 : tensor<16x32x2x1xf32>
      %954 = stablehlo.reshape %953 : (tensor<16x32x2x1xf32>) -> tensor<16x32x2xf32>
      %955 = stablehlo.broadcast_in_dim %512, dims = [] : (tensor<f32>) -> tensor<16x32x2xf32>
      %956 = stablehlo.multiply %954, %955 : tensor<16x32x2xf32>
      %957 = stablehlo.reshape %956 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %958 = stablehlo.broadcast_in_dim %957, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %959 = stablehlo.multiply %958, %576 : tensor<16x32x2x24xf32>
      %960 = stablehlo.multiply %958, %576 : tensor<16x32x2x24xf32>
      %961 = stablehlo.add %942, %959 : tensor<16x32x2x24xf32>
      %962 = stablehlo.add %961, %960 : tensor<16x32x2x24xf32>
      %963 = stablehlo.reshape %901 : (tensor<16x32x2x24xf32>) -> tensor<16x32x48xf32>
      %964 = stablehlo.dot_general %963, %578, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x48xf32>, tensor<48x64xf32>) -> tensor<16x32x64xf32>
      %965 = sdy.manual_computation(%963, %538) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{}, {"fsdp"}]>] manual_axes={"fsdp"} (%966: tensor<4x32x48xf32>, %967: tensor<4x32x64xf32>) {
        %968 = stablehlo.dot_general %966, %967, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x48xf32>, tensor<4x32x64xf32>) -> tensor<48x64xf32>
        %969 = "stablehlo.reduce_scatter"(%968) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 1 : i64}> ({
        ^bb0(%970: tensor<f32>, %971: tensor<f32>):
          %972 = stablehlo.add %970, %971 : tensor<f32>
          stablehlo.return %972 : tensor<f32>
        }) : (tensor<48x64xf32>) -> tensor<48x16xf32>
        sdy.return %969 : tensor<48x16xf32>
      } : (tensor<16x32x48xf32>, tensor<16x32x64xf32>) -> tensor<48x64xf32>
      %973 = stablehlo.reshape %962 : (tensor<16x32x2x24xf32>) -> tensor<16x32x48xf32>
      %974 = stablehlo.dot_general %973, %574, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x48xf32>, tensor<48x64xf32>) -> tensor<16x32x64xf32>
      %975 = sdy.manual_computation(%973, %538) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{}, {"fsdp"}]>] manual_axes={"fsdp"} (%976: tensor<4x32x48xf32>, %977: tensor<4x32x64xf32>) {
        %978 = stablehlo.dot_general %976, %977, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x48xf32>, tensor<4x32x64xf32>) -> tensor<48x64xf32>
        %979 = "stablehlo.reduce_scatter"(%978) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 1 : i64}> ({
        ^bb0(%980: tensor<f32>, %981: tensor<f32>):
          %982 = stablehlo.add %980, %981 : tensor<f32>
          stablehlo.return %982 : tensor<f32>
        }) : (tensor<48x64xf32>) -> tensor<48x16xf32>
        sdy.return %979 : tensor<48x16xf32>
      } : (tensor<16x32x48xf32>, tensor<16x32x64xf32>) -> tensor<48x64xf32>
      %983 = stablehlo.add %964, %974 : tensor<16x32x64xf32>
      %984 = stablehlo.negate %522#3 : tensor<32x12xf32>
      %985 = stablehlo.slice %915 [0:16, 0:32, 0:4, 0:12] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %986 = stablehlo.slice %915 [0:16, 0:32, 0:4, 12:24] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %987 = stablehlo.reshape %522#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %988 = stablehlo.reshape %984 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %989 = stablehlo.broadcast_in_dim %987, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %990 = stablehlo.multiply %985, %989 : tensor<16x32x4x12xf32>
      %991 = stablehlo.broadcast_in_dim %988, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %992 = stablehlo.multiply %986, %991 : tensor<16x32x4x12xf32>
      %993 = stablehlo.subtract %990, %992 : tensor<16x32x4x12xf32>
      %994 = stablehlo.broadcast_in_dim %987, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %995 = stablehlo.multiply %986, %994 : tensor<16x32x4x12xf32>
      %996 = stablehlo.broadcast_in_dim %988, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %997 = stablehlo.multiply %985, %996 : tensor<16x32x4x12xf32>
      %998 = stablehlo.add %995, %997 : tensor<16x32x4x12xf32>
      %999 = stablehlo.concatenate %993, %998, dim = 3 : (tensor<16x32x4x12xf32>, tensor<16x32x4x12xf32>) -> tensor<16x32x4x24xf32>
      %1000 = stablehlo.broadcast_in_dim %555, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x4x24xf32>
      %1001 = stablehlo.multiply %999, %1000 : tensor<16x32x4x24xf32>
      %1002 = stablehlo.multiply %999, %552 : tensor<16x32x4x24xf32>
      %1003 = stablehlo.reduce(%1002 init: %524) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<24xf32>
      %1004 = stablehlo.reshape %1003 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %1005 = stablehlo.reshape %1004 : (tensor<1x1x1x24xf32>) -> tensor<24xf32>
      %1006 = stablehlo.broadcast_in_dim %550, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %1007 = stablehlo.divide %1001, %1006 : tensor<16x32x4x24xf32>
      %1008 = stablehlo.multiply %1006, %1006 : tensor<16x32x4x24xf32>
      %1009 = stablehlo.divide %542, %1008 : tensor<16x32x4x24xf32>
      %1010 = stablehlo.multiply %1001, %1009 : tensor<16x32x4x24xf32>
      %1011 = stablehlo.negate %1010 : tensor<16x32x4x24xf32>
      %1012 = stablehlo.reduce(%1011 init: %524) applies stablehlo.add across dimensions = [3] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<16x32x4xf32>
      %1013 = stablehlo.reshape %1012 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %1014 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %1015 = stablehlo.divide %1014, %550 : tensor<16x32x4x1xf32>
      %1016 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %1017 = stablehlo.multiply %1015, %1016 : tensor<16x32x4x1xf32>
      %1018 = stablehlo.multiply %1013, %1017 : tensor<16x32x4x1xf32>
      %1019 = stablehlo.reshape %1018 : (tensor<16x32x4x1xf32>) -> tensor<16x32x4xf32>
      %1020 = stablehlo.broadcast_in_dim %512, dims = [] : (tensor<f32>) -> tensor<16x32x4xf32>
      %1021 = stablehlo.multiply %1019, %1020 : tensor<16x32x4xf32>
      %1022 = stablehlo.reshape %1021 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %1023 = stablehlo.broadcast_in_dim %1022, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %1024 = stablehlo.multiply %1023, %542 : tensor<16x32x4x24xf32>
      %1025 = stablehlo.multiply %1023, %542 : tensor<16x32x4x24xf32>
      %1026 = stablehlo.add %1007, %1024 : tensor<16x32x4x24xf32>
      %1027 = stablehlo.add %1026, %1025 : tensor<16x32x4x24xf32>
      %1028 = stablehlo.reshape %1027 : (tensor<16x32x4x24xf32>) -> tensor<16x32x96xf32>
      %1029 = stablehlo.dot_general %1028, %540, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x96xf32>, tensor<96x64xf32>) -> tensor<16x32x64xf32>
      %1030 = sdy.manual_computation(%1028, %538) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%1031: tensor<4x32x96xf32>, %1032: tensor<4x32x64xf32>) {
        %1033 = stablehlo.dot_general %1031, %1032, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x96xf32>, tensor<4x32x64xf32>) -> tensor<96x64xf32>
        %1034 = "stablehlo.reduce_scatter"(%1033) <{channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%1035: tensor<f32>, %1036: tensor<f32>):
          %1037 = stablehlo.add %1035, %1036 : tensor<f32>
          stablehlo.return %1037 : tensor<f32>
        }) : (tensor<96x64xf32>) -> tensor<24x64xf32>
        sdy.return %1034 : tensor<24x64xf32>
      } : (tensor<16x32x96xf32>, tensor<16x32x64xf32>) -> tensor<96x64xf32>
      %1038 = stablehlo.add %983, %1029 : tensor<16x32x64xf32>
      %1039 = stablehlo.broadcast_in_dim %536, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %1040 = stablehlo.multiply %1038, %1039 : tensor<16x32x64xf32>
      %1041 = stablehlo.multiply %1038, %533 : tensor<16x32x64xf32>
      %1042 = stablehlo.reduce(%1041 init: %524) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %1043 = stablehlo.reshape %1042 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %1044 = stablehlo.reshape %1043 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %1045 = stablehlo.broadcast_in_dim %531, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %1046 = stablehlo.divide %1040, %1045 : tensor<16x32x64xf32>
      %1047 = stablehlo.multiply %1045, %1045 : tensor<16x32x64xf32>
      %1048 = stablehlo.divide %522#0, %1047 : tensor<16x32x64xf32>
      %1049 = stablehlo.multiply %1040, %1048 : tensor<16x32x64xf32>
      %1050 = stablehlo.negate %1049 : tensor<16x32x64xf32>
      %1051 = stablehlo.reduce(%1050 init: %524) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %1052 = stablehlo.reshape %1051 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %1053 = stablehlo.add %831, %1046 : tensor<16x32x64xf32>
      %1054 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %1055 = stablehlo.divide %1054, %531 : tensor<16x32x1xf32>
      %1056 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %1057 = stablehlo.multiply %1055, %1056 : tensor<16x32x1xf32>
      %1058 = stablehlo.multiply %1052, %1057 : tensor<16x32x1xf32>
      %1059 = stablehlo.reshape %1058 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %1060 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %1061 = stablehlo.multiply %1059, %1060 : tensor<16x32xf32>
      %1062 = stablehlo.reshape %1061 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %1063 = stablehlo.broadcast_in_dim %1062, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %1064 = stablehlo.multiply %1063, %522#0 : tensor<16x32x64xf32>
      %1065 = stablehlo.multiply %1063, %522#0 : tensor<16x32x64xf32>
      %1066 = stablehlo.add %1053, %1064 : tensor<16x32x64xf32>
      %1067 = stablehlo.add %1066, %1065 : tensor<16x32x64xf32>
      %1068 = sdy.sharding_constraint %1067 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %1069 = stablehlo.constant dense<1> : tensor<i32>
      %1070 = stablehlo.add %437, %1069 : tensor<i32>
      %1071 = stablehlo.reshape %1044 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1072 = stablehlo.dynamic_update_slice %439, %1071, %473, %471 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1073 = sdy.sharding_constraint %1030 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %1074 = stablehlo.reshape %1073 : (tensor<96x64xf32>) -> tensor<1x96x64xf32>
      %1075 = stablehlo.dynamic_update_slice %440, %1074, %473, %471, %471 : (tensor<2x96x64xf32>, tensor<1x96x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x96x64xf32>
      %1076 = sdy.sharding_constraint %1075 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x96x64xf32>
      %1077 = stablehlo.reshape %1005 : (tensor<24xf32>) -> tensor<1x24xf32>
      %1078 = stablehlo.dynamic_update_slice %441, %1077, %473, %471 : (tensor<2x24xf32>, tensor<1x24xf32>, tensor<i32>, tensor<i32>) -> tensor<2x24xf32>
      %1079 = sdy.sharding_constraint %975 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %1080 = stablehlo.reshape %1079 : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
      %1081 = stablehlo.dynamic_update_slice %442, %1080, %473, %471, %471 : (tensor<2x48x64xf32>, tensor<1x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x48x64xf32>
      %1082 = sdy.sharding_constraint %1081 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
      %1083 = stablehlo.reshape %940 : (tensor<24xf32>) -> tensor<1x24xf32>
      %1084 = stablehlo.dynamic_update_slice %443, %1083, %473, %471 : (tensor<2x24xf32>, tensor<1x24xf32>, tensor<i32>, tensor<i32>) -> tensor<2x24xf32>
      %1085 = sdy.sharding_constraint %965 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %1086 = stablehlo.reshape %1085 : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
      %1087 = stablehlo.dynamic_update_slice %444, %1086, %473, %471, %471 : (tensor<2x48x64xf32>, tensor<1x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x48x64xf32>
      %1088 = sdy.sharding_constraint %1087 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
      %1089 = sdy.sharding_constraint %861 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %1090 = stablehlo.reshape %1089 : (tensor<64x96xf32>) -> tensor<1x64x96xf32>
      %1091 = stablehlo.dynamic_update_slice %445, %1090, %473, %471, %471 : (tensor<2x64x96xf32>, tensor<1x64x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x96xf32>
      %1092 = sdy.sharding_constraint %1091 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x96xf32>
      %1093 = stablehlo.reshape %837 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1094 = stablehlo.dynamic_update_slice %446, %1093, %473, %471 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1095 = stablehlo.reshape %808 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1096 = stablehlo.dynamic_update_slice %447, %1095, %473, %471 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1097 = sdy.sharding_constraint %794 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1098 = stablehlo.reshape %1097 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1099 = stablehlo.dynamic_update_slice %448, %1098, %473, %471, %471 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1100 = sdy.sharding_constraint %1099 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1101 = sdy.sharding_constraint %785 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1102 = stablehlo.reshape %1101 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1103 = stablehlo.dynamic_update_slice %449, %1102, %473, %471, %471 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1104 = sdy.sharding_constraint %1103 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1105 = sdy.sharding_constraint %745 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1106 = stablehlo.reshape %1105 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1107 = stablehlo.dynamic_update_slice %450, %1106, %473, %471, %471 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1108 = sdy.sharding_constraint %1107 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1109 = stablehlo.reshape %721 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1110 = stablehlo.dynamic_update_slice %451, %1109, %473, %471 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      stablehlo.return %1070, %1068, %1072, %1076, %1078, %1082, %1084, %1088, %1092, %1094, %1096, %1100, %1104, %1108, %1110, %452, %453, %454, %455, %456, %457, %458, %459, %460, %461, %462, %463, %464, %465, %466, %467, %468 : tensor<i32>, tensor<16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    }
    %1111 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
    %1112 = stablehlo.multiply %436#1, %1111 : tensor<16x32x64xf32>
    %1113 = sdy.sharding_constraint %1112 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
    %1114 = sdy.sharding_constraint %1113 <@mesh, [{}, {}, {}]> : tensor<16x32x64xf32>
    %1115 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1116 = sdy.sharding_constraint %1115 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %1117 = sdy.sharding_constraint %arg45 <@mesh, [{}, {}]> : tensor<16x32xi32>
    %1118 = stablehlo.reshape %1117 : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %1119 = "stablehlo.scatter"(%1116, %1118, %1114) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%1120: tensor<f32>, %1121: tensor<f32>):
      %1122 = stablehlo.add %1120, %1121 : tensor<f32>
      stablehlo.return %1122 : tensor<f32>
    }) : (tensor<512x64xf32>, tensor<16x32x1xi32>, tensor<16x32x64xf32>) -> tensor<512x64xf32>
    %1123 = sdy.sharding_constraint %1119 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %1124 = stablehlo.add %373, %1123 : tensor<512x64xf32>
    %1125 = stablehlo.multiply %1124, %1124 : tensor<512x64xf32>
    %1126 = stablehlo.reduce(%1125 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x64xf32>, tensor<f32>) -> tensor<f32>
    %1127 = stablehlo.add %22, %1126 : tensor<f32>
    %1128 = stablehlo.multiply %379, %379 : tensor<64xf32>
    %1129 = stablehlo.reduce(%1128 init: %16) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %1130 = stablehlo.add %1127, %1129 : tensor<f32>
    %1131 = stablehlo.multiply %436#2, %436#2 : tensor<2x64xf32>
    %1132 = stablehlo.reduce(%1131 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1133 = stablehlo.add %1130, %1132 : tensor<f32>
    %1134 = stablehlo.multiply %436#3, %436#3 : tensor<2x96x64xf32>
    %1135 = stablehlo.reduce(%1134 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x96x64xf32>, tensor<f32>) -> tensor<f32>
    %1136 = stablehlo.add %1133, %1135 : tensor<f32>
    %1137 = stablehlo.multiply %436#4, %436#4 : tensor<2x24xf32>
    %1138 = stablehlo.reduce(%1137 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x24xf32>, tensor<f32>) -> tensor<f32>
    %1139 = stablehlo.add %1136, %1138 : tensor<f32>
    %1140 = stablehlo.multiply %436#5, %436#5 : tensor<2x48x64xf32>
    %1141 = stablehlo.reduce(%1140 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x48x64xf32>, tensor<f32>) -> tensor<f32>
    %1142 = stablehlo.add %1139, %1141 : tensor<f32>
    %1143 = stablehlo.multiply %436#6, %436#6 : tensor<2x24xf32>
    %1144 = stablehlo.reduce(%1143 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x24xf32>, tensor<f32>) -> tensor<f32>
    %1145 = stablehlo.add %1142, %1144 : tensor<f32>
    %1146 = stablehlo.multiply %436#7, %436#7 : tensor<2x48x64xf32>
    %1147 = stablehlo.reduce(%1146 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x48x64xf32>, tensor<f32>) -> tensor<f32>
    %1148 = stablehlo.add %1145, %1147 : tensor<f32>
    %1149 = stablehlo.multiply %436#8, %436#8 : tensor<2x64x96xf32>
    %1150 = stablehlo.reduce(%1149 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x96xf32>, tensor<f32>) -> tensor<f32>
    %1151 = stablehlo.add %1148, %1150 : tensor<f32>
    %1152 = stablehlo.multiply %436#9, %436#9 : tensor<2x64xf32>
    %1153 = stablehlo.reduce(%1152 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1154 = stablehlo.add %1151, %1153 : tensor<f32>
    %1155 = stablehlo.multiply %436#10, %436#10 : tensor<2x64xf32>
    %1156 = stablehlo.reduce(%1155 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1157 = stablehlo.add %1154, %1156 : tensor<f32>
    %1158 = stablehlo.multiply %436#11, %436#11 : tensor<2x64x64xf32>
    %1159 = stablehlo.reduce(%1158 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1160 = stablehlo.add %1157, %1159 : tensor<f32>
    %1161 = stablehlo.multiply %436#12, %436#12 : tensor<2x64x64xf32>
    %1162 = stablehlo.reduce(%1161 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1163 = stablehlo.add %1160, %1162 : tensor<f32>
    %1164 = stablehlo.multiply %436#13, %436#13 : tensor<2x64x64xf32>
    %1165 = stablehlo.reduce(%1164 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1166 = stablehlo.add %1163, %1165 : tensor<f32>
    %1167 = stablehlo.multiply %436#14, %436#14 : tensor<2x64xf32>
    %1168 = stablehlo.reduce(%1167 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1169 = stablehlo.add %1166, %1168 : tensor<f32>
    %1170 = stablehlo.sqrt %1169 : tensor<f32>
    %1171 = stablehlo.slice %arg48 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
    %1172 = stablehlo.reshape %1171 : (tensor<1xf32>) -> tensor<f32>
    %1173 = stablehlo.slice %arg48 [1:2] : (tensor<8xf32>) -> tensor<1xf32>
    %1174 = stablehlo.reshape %1173 : (tensor<1xf32>) -> tensor<f32>
    %1175 = stablehlo.slice %arg48 [3:4] : (tensor<8xf32>) -> tensor<1xf32>
    %1176 = stablehlo.reshape %1175 : (tensor<1xf32>) -> tensor<f32>
    %1177 = stablehlo.slice %arg48 [4:5] : (tensor<8xf32>) -> tensor<1xf32>
    %1178 = stablehlo.reshape %1177 : (tensor<1xf32>) -> tensor<f32>
    %1179 = stablehlo.slice %arg48 [5:6] : (tensor<8xf32>) -> tensor<1xf32>
    %1180 = stablehlo.reshape %1179 : (tensor<1xf32>) -> tensor<f32>
    %1181 = stablehlo.slice %arg48 [6:7] : (tensor<8xf32>) -> tensor<1xf32>
    %1182 = stablehlo.reshape %1181 : (tensor<1xf32>) -> tensor<f32>
    %1183 = stablehlo.slice %arg48 [7:8] : (tensor<8xf32>) -> tensor<1xf32>
    %1184 = stablehlo.reshape %1183 : (tensor<1xf32>) -> tensor<f32>
    %1185 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1186 = stablehlo.multiply %arg0, %1185 : tensor<512x64xf32>
    %1187 = stablehlo.subtract %1124, %arg1 : tensor<512x64xf32>
    %1188 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1189 = stablehlo.multiply %1187, %1188 : tensor<512x64xf32>
    %1190 = stablehlo.add %arg1, %1189 : tensor<512x64xf32>
    %1191 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1192 = stablehlo.multiply %arg2, %1191 : tensor<512x64xf32>
    %1193 = stablehlo.multiply %1124, %1124 : tensor<512x64xf32>
    %1194 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1195 = stablehlo.multiply %1193, %1194 : tensor<512x64xf32>
    %1196 = stablehlo.add %1192, %1195 : tensor<512x64xf32>
    %1197 = stablehlo.sqrt %1196 : tensor<512x64xf32>
    %1198 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1199 = stablehlo.divide %1197, %1198 : tensor<512x64xf32>
    %1200 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1201 = stablehlo.add %1199, %1200 : tensor<512x64xf32>
    %1202 = stablehlo.divide %1190, %1201 : tensor<512x64xf32>
    %1203 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1204 = stablehlo.multiply %1202, %1203 : tensor<512x64xf32>
    %1205 = stablehlo.subtract %1186, %1204 : tensor<512x64xf32>
    %1206 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1207 = stablehlo.multiply %arg3, %1206 : tensor<64xf32>
    %1208 = stablehlo.subtract %379, %arg4 : tensor<64xf32>
    %1209 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1210 = stablehlo.multiply %1208, %1209 : tensor<64xf32>
    %1211 = stablehlo.add %arg4, %1210 : tensor<64xf32>
    %1212 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1213 = stablehlo.multiply %arg5, %1212 : tensor<64xf32>
    %1214 = stablehlo.multiply %379, %379 : tensor<64xf32>
    %1215 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1216 = stablehlo.multiply %1214, %1215 : tensor<64xf32>
    %1217 = stablehlo.add %1213, %1216 : tensor<64xf32>
    %1218 = stablehlo.sqrt %1217 : tensor<64xf32>
    %1219 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1220 = stablehlo.divide %1218, %1219 : tensor<64xf32>
    %1221 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1222 = stablehlo.add %1220, %1221 : tensor<64xf32>
    %1223 = stablehlo.divide %1211, %1222 : tensor<64xf32>
    %1224 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1225 = stablehlo.multiply %1223, %1224 : tensor<64xf32>
    %1226 = stablehlo.subtract %1207, %1225 : tensor<64xf32>
    %1227 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1228 = stablehlo.multiply %arg6, %1227 : tensor<2x64xf32>
    %1229 = stablehlo.subtract %436#2, %arg7 : tensor<2x64xf32>
    %1230 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1231 = stablehlo.multiply %1229, %1230 : tensor<2x64xf32>
    %1232 = stablehlo.add %arg7, %1231 : tensor<2x64xf32>
    %1233 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1234 = stablehlo.multiply %arg8, %1233 : tensor<2x64xf32>
    %1235 = stablehlo.multiply %436#2, %436#2 : tensor<2x64xf32>
    %1236 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1237 = stablehlo.multiply %1235, %1236 : tensor<2x64xf32>
    %1238 = stablehlo.add %1234, %1237 : tensor<2x64xf32>
    %1239 = stablehlo.sqrt %1238 : tensor<2x64xf32>
    %1240 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1241 = stablehlo.divide %1239, %1240 : tensor<2x64xf32>
    %1242 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1243 = stablehlo.add %1241, %1242 : tensor<2x64xf32>
    %1244 = stablehlo.divide %1232, %1243 : tensor<2x64xf32>
    %1245 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1246 = stablehlo.multiply %1244, %1245 : tensor<2x64xf32>
    %1247 = stablehlo.subtract %1228, %1246 : tensor<2x64xf32>
    %1248 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1249 = stablehlo.multiply %arg9, %1248 : tensor<2x96x64xf32>
    %1250 = stablehlo.subtract %436#3, %arg10 : tensor<2x96x64xf32>
    %1251 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1252 = stablehlo.multiply %1250, %1251 : tensor<2x96x64xf32>
    %1253 = stablehlo.add %arg10, %1252 : tensor<2x96x64xf32>
    %1254 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1255 = stablehlo.multiply %arg11, %1254 : tensor<2x96x64xf32>
    %1256 = stablehlo.multiply %436#3, %436#3 : tensor<2x96x64xf32>
    %1257 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1258 = stablehlo.multiply %1256, %1257 : tensor<2x96x64xf32>
    %1259 = stablehlo.add %1255, %1258 : tensor<2x96x64xf32>
    %1260 = stablehlo.sqrt %1259 : tensor<2x96x64xf32>
    %1261 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1262 = stablehlo.divide %1260, %1261 : tensor<2x96x64xf32>
    %1263 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1264 = stablehlo.add %1262, %1263 : tensor<2x96x64xf32>
    %1265 = stablehlo.divide %1253, %1264 : tensor<2x96x64xf32>
    %1266 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1267 = stablehlo.multiply %1265, %1266 : tensor<2x96x64xf32>
    %1268 = stablehlo.subtract %1249, %1267 : tensor<2x96x64xf32>
    %1269 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1270 = stablehlo.multiply %arg12, %1269 : tensor<2x24xf32>
    %1271 = stablehlo.subtract %436#4, %arg13 : tensor<2x24xf32>
    %1272 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1273 = stablehlo.multiply %1271, %1272 : tensor<2x24xf32>
    %1274 = stablehlo.add %arg13, %1273 : tensor<2x24xf32>
    %1275 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1276 = stablehlo.multiply %arg14, %1275 : tensor<2x24xf32>
    %1277 = stablehlo.multiply %436#4, %436#4 : tensor<2x24xf32>
    %1278 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1279 = stablehlo.multiply %1277, %1278 : tensor<2x24xf32>
    %1280 = stablehlo.add %1276, %1279 : tensor<2x24xf32>
    %1281 = stablehlo.sqrt %1280 : tensor<2x24xf32>
    %1282 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1283 = stablehlo.divide %1281, %1282 : tensor<2x24xf32>
    %1284 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1285 = stablehlo.add %1283, %1284 : tensor<2x24xf32>
    %1286 = stablehlo.divide %1274, %1285 : tensor<2x24xf32>
    %1287 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1288 = stablehlo.multiply %1286, %1287 : tensor<2x24xf32>
    %1289 = stablehlo.subtract %1270, %1288 : tensor<2x24xf32>
    %1290 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1291 = stablehlo.multiply %arg15, %1290 : tensor<2x48x64xf32>
    %1292 = stablehlo.subtract %436#5, %arg16 : tensor<2x48x64xf32>
    %1293 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1294 = stablehlo.multiply %1292, %1293 : tensor<2x48x64xf32>
    %1295 = stablehlo.add %arg16, %1294 : tensor<2x48x64xf32>
    %1296 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1297 = stablehlo.multiply %arg17, %1296 : tensor<2x48x64xf32>
    %1298 = stablehlo.multiply %436#5, %436#5 : tensor<2x48x64xf32>
    %1299 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1300 = stablehlo.multiply %1298, %1299 : tensor<2x48x64xf32>
    %1301 = stablehlo.add %1297, %1300 : tensor<2x48x64xf32>
    %1302 = stablehlo.sqrt %1301 : tensor<2x48x64xf32>
    %1303 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1304 = stablehlo.divide %1302, %1303 : tensor<2x48x64xf32>
    %1305 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1306 = stablehlo.add %1304, %1305 : tensor<2x48x64xf32>
    %1307 = stablehlo.divide %1295, %1306 : tensor<2x48x64xf32>
    %1308 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1309 = stablehlo.multiply %1307, %1308 : tensor<2x48x64xf32>
    %1310 = stablehlo.subtract %1291, %1309 : tensor<2x48x64xf32>
    %1311 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1312 = stablehlo.multiply %arg18, %1311 : tensor<2x24xf32>
    %1313 = stablehlo.subtract %436#6, %arg19 : tensor<2x24xf32>
    %1314 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1315 = stablehlo.multiply %1313, %1314 : tensor<2x24xf32>
    %1316 = stablehlo.add %arg19, %1315 : tensor<2x24xf32>
    %1317 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1318 = stablehlo.multiply %arg20, %1317 : tensor<2x24xf32>
    %1319 = stablehlo.multiply %436#6, %436#6 : tensor<2x24xf32>
    %1320 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1321 = stablehlo.multiply %1319, %1320 : tensor<2x24xf32>
    %1322 = stablehlo.add %1318, %1321 : tensor<2x24xf32>
    %1323 = stablehlo.sqrt %1322 : tensor<2x24xf32>
    %1324 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1325 = stablehlo.divide %1323, %1324 : tensor<2x24xf32>
    %1326 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1327 = stablehlo.add %1325, %1326 : tensor<2x24xf32>
    %1328 = stablehlo.divide %1316, %1327 : tensor<2x24xf32>
    %1329 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1330 = stablehlo.multiply %1328, %1329 : tensor<2x24xf32>
    %1331 = stablehlo.subtract %1312, %1330 : tensor<2x24xf32>
    %1332 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1333 = stablehlo.multiply %arg21, %1332 : tensor<2x48x64xf32>
    %1334 = stablehlo.subtract %436#7, %arg22 : tensor<2x48x64xf32>
    %1335 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1336 = stablehlo.multiply %1334, %1335 : tensor<2x48x64xf32>
    %1337 = stablehlo.add %arg22, %1336 : tensor<2x48x64xf32>
    %1338 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1339 = stablehlo.multiply %arg23, %1338 : tensor<2x48x64xf32>
    %1340 = stablehlo.multiply %436#7, %436#7 : tensor<2x48x64xf32>
    %1341 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1342 = stablehlo.multiply %1340, %1341 : tensor<2x48x64xf32>
    %1343 = stablehlo.add %1339, %1342 : tensor<2x48x64xf32>
    %1344 = stablehlo.sqrt %1343 : tensor<2x48x64xf32>
    %1345 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1346 = stablehlo.divide %1344, %1345 : tensor<2x48x64xf32>
    %1347 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1348 = stablehlo.add %1346, %1347 : tensor<2x48x64xf32>
    %1349 = stablehlo.divide %1337, %1348 : tensor<2x48x64xf32>
    %1350 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1351 = stablehlo.multiply %1349, %1350 : tensor<2x48x64xf32>
    %1352 = stablehlo.subtract %1333, %1351 : tensor<2x48x64xf32>
    %1353 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1354 = stablehlo.multiply %arg24, %1353 : tensor<2x64x96xf32>
    %1355 = stablehlo.subtract %436#8, %arg25 : tensor<2x64x96xf32>
    %1356 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1357 = stablehlo.multiply %1355, %1356 : tensor<2x64x96xf32>
    %1358 = stablehlo.add %arg25, %1357 : tensor<2x64x96xf32>
    %1359 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1360 = stablehlo.multiply %arg26, %1359 : tensor<2x64x96xf32>
    %1361 = stablehlo.multiply %436#8, %436#8 : tensor<2x64x96xf32>
    %1362 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1363 = stablehlo.multiply %1361, %1362 : tensor<2x64x96xf32>
    %1364 = stablehlo.add %1360, %1363 : tensor<2x64x96xf32>
    %1365 = stablehlo.sqrt %1364 : tensor<2x64x96xf32>
    %1366 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1367 = stablehlo.divide %1365, %1366 : tensor<2x64x96xf32>
    %1368 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1369 = stablehlo.add %1367, %1368 : tensor<2x64x96xf32>
    %1370 = stablehlo.divide %1358, %1369 : tensor<2x64x96xf32>
    %1371 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1372 = stablehlo.multiply %1370, %1371 : tensor<2x64x96xf32>
    %1373 = stablehlo.subtract %1354, %1372 : tensor<2x64x96xf32>
    %1374 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1375 = stablehlo.multiply %arg27, %1374 : tensor<2x64xf32>
    %1376 = stablehlo.subtract %436#9, %arg28 : tensor<2x64xf32>
    %1377 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1378 = stablehlo.multiply %1376, %1377 : tensor<2x64xf32>
    %1379 = stablehlo.add %arg28, %1378 : tensor<2x64xf32>
    %1380 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1381 = stablehlo.multiply %arg29, %1380 : tensor<2x64xf32>
    %1382 = stablehlo.multiply %436#9, %436#9 : tensor<2x64xf32>
    %1383 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1384 = stablehlo.multiply %1382, %1383 : tensor<2x64xf32>
    %1385 = stablehlo.add %1381, %1384 : tensor<2x64xf32>
    %1386 = stablehlo.sqrt %1385 : tensor<2x64xf32>
    %1387 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1388 = stablehlo.divide %1386, %1387 : tensor<2x64xf32>
    %1389 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1390 = stablehlo.add %1388, %1389 : tensor<2x64xf32>
    %1391 = stablehlo.divide %1379, %1390 : tensor<2x64xf32>
    %1392 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1393 = stablehlo.multiply %1391, %1392 : tensor<2x64xf32>
    %1394 = stablehlo.subtract %1375, %1393 : tensor<2x64xf32>
    %1395 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1396 = stablehlo.multiply %arg30, %1395 : tensor<2x64xf32>
    %1397 = stablehlo.subtract %436#10, %arg31 : tensor<2x64xf32>
    %1398 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1399 = stablehlo.multiply %1397, %1398 : tensor<2x64xf32>
    %1400 = stablehlo.add %arg31, %1399 : tensor<2x64xf32>
    %1401 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1402 = stablehlo.multiply %arg32, %1401 : tensor<2x64xf32>
    %1403 = stablehlo.multiply %436#10, %436#10 : tensor<2x64xf32>
    %1404 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1405 = stablehlo.multiply %1403, %1404 : tensor<2x64xf32>
    %1406 = stablehlo.add %1402, %1405 : tensor<2x64xf32>
    %1407 = stablehlo.sqrt %1406 : tensor<2x64xf32>
    %1408 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1409 = stablehlo.divide %1407, %1408 : tensor<2x64xf32>
    %1410 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1411 = stablehlo.add %1409, %1410 : tensor<2x64xf32>
    %1412 = stablehlo.divide %1400, %1411 : tensor<2x64xf32>
    %1413 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1414 = stablehlo.multiply %1412, %1413 : tensor<2x64xf32>
    %1415 = stablehlo.subtract %1396, %1414 : tensor<2x64xf32>
    %1416 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1417 = stablehlo.multiply %arg33, %1416 : tensor<2x64x64xf32>
    %1418 = stablehlo.subtract %436#11, %arg34 : tensor<2x64x64xf32>
    %1419 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1420 = stablehlo.multiply %1418, %1419 : tensor<2x64x64xf32>
    %1421 = stablehlo.add %arg34, %1420 : tensor<2x64x64xf32>
    %1422 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1423 = stablehlo.multiply %arg35, %1422 : tensor<2x64x64xf32>
    %1424 = stablehlo.multiply %436#11, %436#11 : tensor<2x64x64xf32>
    %1425 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1426 = stablehlo.multiply %1424, %1425 : tensor<2x64x64xf32>
    %1427 = stablehlo.add %1423, %1426 : tensor<2x64x64xf32>
    %1428 = stablehlo.sqrt %1427 : tensor<2x64x64xf32>
    %1429 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1430 = stablehlo.divide %1428, %1429 : tensor<2x64x64xf32>
    %1431 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1432 = stablehlo.add %1430, %1431 : tensor<2x64x64xf32>
    %1433 = stablehlo.divide %1421, %1432 : tensor<2x64x64xf32>
    %1434 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1435 = stablehlo.multiply %1433, %1434 : tensor<2x64x64xf32>
    %1436 = stablehlo.subtract %1417, %1435 : tensor<2x64x64xf32>
    %1437 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1438 = stablehlo.multiply %arg36, %1437 : tensor<2x64x64xf32>
    %1439 = stablehlo.subtract %436#12, %arg37 : tensor<2x64x64xf32>
    %1440 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1441 = stablehlo.multiply %1439, %1440 : tensor<2x64x64xf32>
    %1442 = stablehlo.add %arg37, %1441 : tensor<2x64x64xf32>
    %1443 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1444 = stablehlo.multiply %arg38, %1443 : tensor<2x64x64xf32>
    %1445 = stablehlo.multiply %436#12, %436#12 : tensor<2x64x64xf32>
    %1446 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1447 = stablehlo.multiply %1445, %1446 : tensor<2x64x64xf32>
    %1448 = stablehlo.add %1444, %1447 : tensor<2x64x64xf32>
    %1449 = stablehlo.sqrt %1448 : tensor<2x64x64xf32>
    %1450 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1451 = stablehlo.divide %1449, %1450 : tensor<2x64x64xf32>
    %1452 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1453 = stablehlo.add %1451, %1452 : tensor<2x64x64xf32>
    %1454 = stablehlo.divide %1442, %1453 : tensor<2x64x64xf32>
    %1455 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1456 = stablehlo.multiply %1454, %1455 : tensor<2x64x64xf32>
    %1457 = stablehlo.subtract %1438, %1456 : tensor<2x64x64xf32>
    %1458 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1459 = stablehlo.multiply %arg39, %1458 : tensor<2x64x64xf32>
    %1460 = stablehlo.subtract %436#13, %arg40 : tensor<2x64x64xf32>
    %1461 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1462 = stablehlo.multiply %1460, %1461 : tensor<2x64x64xf32>
    %1463 = stablehlo.add %arg40, %1462 : tensor<2x64x64xf32>
    %1464 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1465 = stablehlo.multiply %arg41, %1464 : tensor<2x64x64xf32>
    %1466 = stablehlo.multiply %436#13, %436#13 : tensor<2x64x64xf32>
    %1467 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1468 = stablehlo.multiply %1466, %1467 : tensor<2x64x64xf32>
    %1469 = stablehlo.add %1465, %1468 : tensor<2x64x64xf32>
    %1470 = stablehlo.sqrt %1469 : tensor<2x64x64xf32>
    %1471 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1472 = stablehlo.divide %1470, %1471 : tensor<2x64x64xf32>
    %1473 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1474 = stablehlo.add %1472, %1473 : tensor<2x64x64xf32>
    %1475 = stablehlo.divide %1463, %1474 : tensor<2x64x64xf32>
    %1476 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1477 = stablehlo.multiply %1475, %1476 : tensor<2x64x64xf32>
    %1478 = stablehlo.subtract %1459, %1477 : tensor<2x64x64xf32>
    %1479 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1480 = stablehlo.multiply %arg42, %1479 : tensor<2x64xf32>
    %1481 = stablehlo.subtract %436#14, %arg43 : tensor<2x64xf32>
    %1482 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1483 = stablehlo.multiply %1481, %1482 : tensor<2x64xf32>
    %1484 = stablehlo.add %arg43, %1483 : tensor<2x64xf32>
    %1485 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1486 = stablehlo.multiply %arg44, %1485 : tensor<2x64xf32>
    %1487 = stablehlo.multiply %436#14, %436#14 : tensor<2x64xf32>
    %1488 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1489 = stablehlo.multiply %1487, %1488 : tensor<2x64xf32>
    %1490 = stablehlo.add %1486, %1489 : tensor<2x64xf32>
    %1491 = stablehlo.sqrt %1490 : tensor<2x64xf32>
    %1492 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1493 = stablehlo.divide %1491, %1492 : tensor<2x64xf32>
    %1494 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1495 = stablehlo.add %1493, %1494 : tensor<2x64xf32>
    %1496 = stablehlo.divide %1484, %1495 : tensor<2x64xf32>
    %1497 = stablehlo.broadcast_in_dim %1184, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1498 = stablehlo.multiply %1496, %1497 : tensor<2x64xf32>
    %1499 = stablehlo.subtract %1480, %1498 : tensor<2x64xf32>
    %1500 = stablehlo.reduce(%arg49 init: %16) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    return %1205, %1190, %1196, %1226, %1211, %1217, %1247, %1232, %1238, %1268, %1253, %1259, %1289, %1274, %1280, %1310, %1295, %1301, %1331, %1316, %1322, %1352, %1337, %1343, %1373, %1358, %1364, %1394, %1379, %1385, %1415, %1400, %1406, %1436, %1421, %1427, %1457, %1442, %1448, %1478, %1463, %1469, %1499, %1484, %1490, %367, %318, %1170, %1500 : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64x96xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>
  }
}
