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
      %arg48: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>} // "hyper"
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
      tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}
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
    %319 = sdy.sharding_constraint %308 <@mesh, [{}, {}, {}]> : tensor<16x32x64xf32>
    %320 = sdy.sharding_constraint %arg0 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %321 = stablehlo.dot_general %319, %320, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<512x64xf32>) -> tensor<16x32x512xf32>
    %322 = sdy.sharding_constraint %321 <@mesh, [{}, {}, {"fsdp"}]> : tensor<16x32x512xf32>
    %323 = stablehlo.constant dense<-100> : tensor<i32>
    %324 = stablehlo.broadcast_in_dim %323, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %325 = stablehlo.compare NE, %313, %324, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
    %326 = stablehlo.iota dim = 2 : tensor<16x32x512xi32>
    %327 = stablehlo.reshape %313 : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %328 = stablehlo.broadcast_in_dim %327, dims = [0, 1, 2] : (tensor<16x32x1xi32>) -> tensor<16x32x512xi32>
    %329 = stablehlo.compare EQ, %326, %328, SIGNED : (tensor<16x32x512xi32>, tensor<16x32x512xi32>) -> tensor<16x32x512xi1>
    %330 = stablehlo.reduce(%322 init: %20) applies stablehlo.maximum across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %331 = stablehlo.reshape %330 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %332 = stablehlo.broadcast_in_dim %331, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %333 = stablehlo.subtract %322, %332 : tensor<16x32x512xf32>
    %334 = stablehlo.exponential %333 : tensor<16x32x512xf32>
    %335 = stablehlo.reduce(%334 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %336 = stablehlo.log %335 : tensor<16x32xf32>
    %337 = stablehlo.add %330, %336 : tensor<16x32xf32>
    %338 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<16x32x512xf32>
    %339 = stablehlo.select %329, %322, %338 : tensor<16x32x512xi1>, tensor<16x32x512xf32>
    %340 = stablehlo.reduce(%339 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x512xf32>, tensor<f32>) -> tensor<16x32xf32>
    %341 = stablehlo.subtract %337, %340 : tensor<16x32xf32>
    %342 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %343 = stablehlo.select %325, %341, %342 : tensor<16x32xi1>, tensor<16x32xf32>
    %344 = stablehlo.reshape %337 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %345 = stablehlo.broadcast_in_dim %344, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %346 = stablehlo.subtract %322, %345 : tensor<16x32x512xf32>
    %347 = stablehlo.exponential %346 : tensor<16x32x512xf32>
    %348 = stablehlo.convert %329 : (tensor<16x32x512xi1>) -> tensor<16x32x512xf32>
    %349 = stablehlo.subtract %347, %348 : tensor<16x32x512xf32>
    %350 = stablehlo.convert %325 : (tensor<16x32xi1>) -> tensor<16x32xf32>
    %351 = stablehlo.reshape %350 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %352 = stablehlo.broadcast_in_dim %351, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x512xf32>
    %353 = stablehlo.multiply %349, %352 : tensor<16x32x512xf32>
    %354 = sdy.manual_computation(%353, %319) in_shardings=[<@mesh, [{}, {}, {"fsdp"}]>, <@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%355: tensor<16x32x128xf32>, %356: tensor<16x32x64xf32>) {
      %357 = stablehlo.dot_general %355, %356, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x128xf32>, tensor<16x32x64xf32>) -> tensor<128x64xf32>
      sdy.return %357 : tensor<128x64xf32>
    } : (tensor<16x32x512xf32>, tensor<16x32x64xf32>) -> tensor<512x64xf32>
    %358 = sdy.manual_computation(%353, %320) in_shardings=[<@mesh, [{}, {}, {"fsdp"}]>, <@mesh, [{"fsdp"}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}, {}]>] manual_axes={"fsdp"} (%359: tensor<16x32x128xf32>, %360: tensor<128x64xf32>) {
      %361 = stablehlo.dot_general %359, %360, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x128xf32>, tensor<128x64xf32>) -> tensor<16x32x64xf32>
      %362 = "stablehlo.reduce_scatter"(%361) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
      ^bb0(%363: tensor<f32>, %364: tensor<f32>):
        %365 = stablehlo.add %363, %364 : tensor<f32>
        stablehlo.return %365 : tensor<f32>
      }) : (tensor<16x32x64xf32>) -> tensor<4x32x64xf32>
      sdy.return %362 : tensor<4x32x64xf32>
    } : (tensor<16x32x512xf32>, tensor<512x64xf32>) -> tensor<16x32x64xf32>
    %366 = stablehlo.reduce(%343 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %367 = stablehlo.maximum %318, %19 : tensor<f32>
    %368 = stablehlo.divide %19, %367 : tensor<f32>
    %369 = stablehlo.broadcast_in_dim %368, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
    %370 = stablehlo.multiply %358, %369 : tensor<16x32x64xf32>
    %371 = stablehlo.broadcast_in_dim %368, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %372 = stablehlo.multiply %354, %371 : tensor<512x64xf32>
    %373 = stablehlo.broadcast_in_dim %306, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
    %374 = stablehlo.multiply %370, %373 : tensor<16x32x64xf32>
    %375 = stablehlo.multiply %370, %303 : tensor<16x32x64xf32>
    %376 = stablehlo.reduce(%375 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
    %377 = stablehlo.reshape %376 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %378 = stablehlo.reshape %377 : (tensor<1x1x64xf32>) -> tensor<64xf32>
    %379 = stablehlo.broadcast_in_dim %301, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %380 = stablehlo.divide %374, %379 : tensor<16x32x64xf32>
    %381 = stablehlo.multiply %379, %379 : tensor<16x32x64xf32>
    %382 = stablehlo.divide %26#1, %381 : tensor<16x32x64xf32>
    %383 = stablehlo.multiply %374, %382 : tensor<16x32x64xf32>
    %384 = stablehlo.negate %383 : tensor<16x32x64xf32>
    %385 = stablehlo.reduce(%384 init: %16) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
    %386 = stablehlo.reshape %385 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %387 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %388 = stablehlo.divide %387, %301 : tensor<16x32x1xf32>
    %389 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
    %390 = stablehlo.multiply %388, %389 : tensor<16x32x1xf32>
    %391 = stablehlo.multiply %386, %390 : tensor<16x32x1xf32>
    %392 = stablehlo.reshape %391 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
    %393 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %394 = stablehlo.multiply %392, %393 : tensor<16x32xf32>
    %395 = stablehlo.reshape %394 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
    %396 = stablehlo.broadcast_in_dim %395, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
    %397 = stablehlo.multiply %396, %26#1 : tensor<16x32x64xf32>
    %398 = stablehlo.multiply %396, %26#1 : tensor<16x32x64xf32>
    %399 = stablehlo.add %380, %397 : tensor<16x32x64xf32>
    %400 = stablehlo.add %399, %398 : tensor<16x32x64xf32>
    %401 = stablehlo.constant dense<0> : tensor<i32>
    %402 = stablehlo.constant dense<0.0> : tensor<f32>
    %403 = stablehlo.broadcast_in_dim %402, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %404 = stablehlo.constant dense<0.0> : tensor<f32>
    %405 = stablehlo.broadcast_in_dim %404, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %406 = sdy.sharding_constraint %405 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x96x64xf32>
    %407 = stablehlo.constant dense<0.0> : tensor<f32>
    %408 = stablehlo.broadcast_in_dim %407, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %409 = stablehlo.constant dense<0.0> : tensor<f32>
    %410 = stablehlo.broadcast_in_dim %409, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %411 = sdy.sharding_constraint %410 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
    %412 = stablehlo.constant dense<0.0> : tensor<f32>
    %413 = stablehlo.broadcast_in_dim %412, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %414 = stablehlo.constant dense<0.0> : tensor<f32>
    %415 = stablehlo.broadcast_in_dim %414, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %416 = sdy.sharding_constraint %415 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
    %417 = stablehlo.constant dense<0.0> : tensor<f32>
    %418 = stablehlo.broadcast_in_dim %417, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %419 = sdy.sharding_constraint %418 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x96xf32>
    %420 = stablehlo.constant dense<0.0> : tensor<f32>
    %421 = stablehlo.broadcast_in_dim %420, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %422 = stablehlo.constant dense<0.0> : tensor<f32>
    %423 = stablehlo.broadcast_in_dim %422, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %424 = stablehlo.constant dense<0.0> : tensor<f32>
    %425 = stablehlo.broadcast_in_dim %424, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %426 = sdy.sharding_constraint %425 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %427 = stablehlo.constant dense<0.0> : tensor<f32>
    %428 = stablehlo.broadcast_in_dim %427, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %429 = sdy.sharding_constraint %428 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %430 = stablehlo.constant dense<0.0> : tensor<f32>
    %431 = stablehlo.broadcast_in_dim %430, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %432 = sdy.sharding_constraint %431 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
    %433 = stablehlo.constant dense<0.0> : tensor<f32>
    %434 = stablehlo.broadcast_in_dim %433, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %435:32 = stablehlo.while(%436 = %401, %437 = %400, %438 = %403, %439 = %406, %440 = %408, %441 = %411, %442 = %413, %443 = %416, %444 = %419, %445 = %421, %446 = %423, %447 = %426, %448 = %429, %449 = %432, %450 = %434, %451 = %arg6, %452 = %arg9, %453 = %arg12, %454 = %arg15, %455 = %arg18, %456 = %arg21, %457 = %arg24, %458 = %arg27, %459 = %arg30, %460 = %arg33, %461 = %arg36, %462 = %arg39, %463 = %arg42, %464 = %26#2, %465 = %arg47, %466 = %14, %467 = %15) : tensor<i32>, tensor<16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    cond {
      %468 = stablehlo.constant dense<2> : tensor<i32>
      %469 = stablehlo.compare LT, %436, %468, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %469 : tensor<i1>
    } do {
      %470 = stablehlo.constant dense<0> : tensor<i32>
      %471 = stablehlo.constant dense<1> : tensor<i32>
      %472 = stablehlo.subtract %471, %436 : tensor<i32>
      %473 = stablehlo.dynamic_slice %451, %472, %470, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %474 = stablehlo.reshape %473 : (tensor<1x64xf32>) -> tensor<64xf32>
      %475 = stablehlo.dynamic_slice %452, %472, %470, %470, sizes = [1, 96, 64] : (tensor<2x96x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x64xf32>
      %476 = stablehlo.reshape %475 : (tensor<1x96x64xf32>) -> tensor<96x64xf32>
      %477 = sdy.sharding_constraint %476 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %478 = stablehlo.dynamic_slice %453, %472, %470, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %479 = stablehlo.reshape %478 : (tensor<1x24xf32>) -> tensor<24xf32>
      %480 = stablehlo.dynamic_slice %454, %472, %470, %470, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %481 = stablehlo.reshape %480 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %482 = sdy.sharding_constraint %481 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %483 = stablehlo.dynamic_slice %455, %472, %470, sizes = [1, 24] : (tensor<2x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x24xf32>
      %484 = stablehlo.reshape %483 : (tensor<1x24xf32>) -> tensor<24xf32>
      %485 = stablehlo.dynamic_slice %456, %472, %470, %470, sizes = [1, 48, 64] : (tensor<2x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x48x64xf32>
      %486 = stablehlo.reshape %485 : (tensor<1x48x64xf32>) -> tensor<48x64xf32>
      %487 = sdy.sharding_constraint %486 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %488 = stablehlo.dynamic_slice %457, %472, %470, %470, sizes = [1, 64, 96] : (tensor<2x64x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x96xf32>
      %489 = stablehlo.reshape %488 : (tensor<1x64x96xf32>) -> tensor<64x96xf32>
      %490 = sdy.sharding_constraint %489 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %491 = stablehlo.dynamic_slice %458, %472, %470, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %492 = stablehlo.reshape %491 : (tensor<1x64xf32>) -> tensor<64xf32>
      %493 = stablehlo.dynamic_slice %459, %472, %470, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %494 = stablehlo.reshape %493 : (tensor<1x64xf32>) -> tensor<64xf32>
      %495 = stablehlo.dynamic_slice %460, %472, %470, %470, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %496 = stablehlo.reshape %495 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %497 = sdy.sharding_constraint %496 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %498 = stablehlo.dynamic_slice %461, %472, %470, %470, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %499 = stablehlo.reshape %498 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %500 = sdy.sharding_constraint %499 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %501 = stablehlo.dynamic_slice %462, %472, %470, %470, sizes = [1, 64, 64] : (tensor<2x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>
      %502 = stablehlo.reshape %501 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
      %503 = sdy.sharding_constraint %502 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %504 = stablehlo.dynamic_slice %463, %472, %470, sizes = [1, 64] : (tensor<2x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
      %505 = stablehlo.reshape %504 : (tensor<1x64xf32>) -> tensor<64xf32>
      %506 = stablehlo.dynamic_slice %464, %472, %470, %470, %470, sizes = [1, 16, 32, 64] : (tensor<2x16x32x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x32x64xf32>
      %507 = stablehlo.reshape %506 : (tensor<1x16x32x64xf32>) -> tensor<16x32x64xf32>
      %508 = stablehlo.constant dense<1.5625e-02> : tensor<f32>
      %509 = stablehlo.constant dense<1.0e-06> : tensor<f32>
      %510 = stablehlo.constant dense<1.0> : tensor<f32>
      %511 = stablehlo.constant dense<4.1666668e-02> : tensor<f32>
      %512 = stablehlo.constant dense<16> : tensor<i32>
      %513 = stablehlo.constant dense<0> : tensor<i32>
      %514 = stablehlo.constant dense<1.7677669e-01> : tensor<f32>
      %515 = stablehlo.constant dense<-1.0e+30> : tensor<f32>
      %516 = stablehlo.constant dense<4.4715e-02> : tensor<f32>
      %517 = stablehlo.constant dense<7.978846e-01> : tensor<f32>
      %518 = stablehlo.constant dense<5.0e-01> : tensor<f32>
      %519 = stablehlo.constant dense<1.34145e-01> : tensor<f32>
      %520 = stablehlo.constant dense<0.0> : tensor<f32>
      %521:18 = stablehlo.optimization_barrier %507, %465, %466, %467, %474, %477, %479, %482, %484, %487, %490, %492, %494, %497, %500, %503, %505, %437 : tensor<16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>, tensor<64xf32>, tensor<96x64xf32>, tensor<24xf32>, tensor<48x64xf32>, tensor<24xf32>, tensor<48x64xf32>, tensor<64x96xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<16x32x64xf32>
      %522 = stablehlo.multiply %521#0, %521#0 : tensor<16x32x64xf32>
      %523 = stablehlo.constant dense<0.0> : tensor<f32>
      %524 = stablehlo.reduce(%522 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %525 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %526 = stablehlo.multiply %524, %525 : tensor<16x32xf32>
      %527 = stablehlo.reshape %526 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %528 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %529 = stablehlo.add %527, %528 : tensor<16x32x1xf32>
      %530 = stablehlo.sqrt %529 : tensor<16x32x1xf32>
      %531 = stablehlo.broadcast_in_dim %530, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %532 = stablehlo.divide %521#0, %531 : tensor<16x32x64xf32>
      %533 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %534 = stablehlo.add %533, %521#4 : tensor<64xf32>
      %535 = stablehlo.reshape %534 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %536 = stablehlo.broadcast_in_dim %535, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %537 = stablehlo.multiply %532, %536 : tensor<16x32x64xf32>
      %538 = sdy.sharding_constraint %521#5 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %539 = sdy.sharding_constraint %538 <@mesh, [{}, {}]> : tensor<96x64xf32>
      %540 = stablehlo.dot_general %537, %539, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<96x64xf32>) -> tensor<16x32x96xf32>
      %541 = stablehlo.reshape %540 : (tensor<16x32x96xf32>) -> tensor<16x32x4x24xf32>
      %542 = stablehlo.multiply %541, %541 : tensor<16x32x4x24xf32>
      %543 = stablehlo.reduce(%542 init: %523) applies stablehlo.add across dimensions = [3] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<16x32x4xf32>
      %544 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x4xf32>
      %545 = stablehlo.multiply %543, %544 : tensor<16x32x4xf32>
      %546 = stablehlo.reshape %545 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %547 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %548 = stablehlo.add %546, %547 : tensor<16x32x4x1xf32>
      %549 = stablehlo.sqrt %548 : tensor<16x32x4x1xf32>
      %550 = stablehlo.broadcast_in_dim %549, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %551 = stablehlo.divide %541, %550 : tensor<16x32x4x24xf32>
      %552 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %553 = stablehlo.add %552, %521#6 : tensor<24xf32>
      %554 = stablehlo.reshape %553 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %555 = stablehlo.broadcast_in_dim %554, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x4x24xf32>
      %556 = stablehlo.multiply %551, %555 : tensor<16x32x4x24xf32>
      %557 = stablehlo.slice %556 [0:16, 0:32, 0:4, 0:12] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %558 = stablehlo.slice %556 [0:16, 0:32, 0:4, 12:24] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %559 = stablehlo.reshape %521#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %560 = stablehlo.reshape %521#3 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %561 = stablehlo.broadcast_in_dim %559, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %562 = stablehlo.multiply %557, %561 : tensor<16x32x4x12xf32>
      %563 = stablehlo.broadcast_in_dim %560, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %564 = stablehlo.multiply %558, %563 : tensor<16x32x4x12xf32>
      %565 = stablehlo.subtract %562, %564 : tensor<16x32x4x12xf32>
      %566 = stablehlo.broadcast_in_dim %559, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %567 = stablehlo.multiply %558, %566 : tensor<16x32x4x12xf32>
      %568 = stablehlo.broadcast_in_dim %560, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %569 = stablehlo.multiply %557, %568 : tensor<16x32x4x12xf32>
      %570 = stablehlo.add %567, %569 : tensor<16x32x4x12xf32>
      %571 = stablehlo.concatenate %565, %570, dim = 3 : (tensor<16x32x4x12xf32>, tensor<16x32x4x12xf32>) -> tensor<16x32x4x24xf32>
      %572 = sdy.sharding_constraint %521#7 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %573 = sdy.sharding_constraint %572 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %574 = stablehlo.dot_general %537, %573, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %575 = stablehlo.reshape %574 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %576 = sdy.sharding_constraint %521#9 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %577 = sdy.sharding_constraint %576 <@mesh, [{}, {}]> : tensor<48x64xf32>
      %578 = stablehlo.dot_general %537, %577, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<48x64xf32>) -> tensor<16x32x48xf32>
      %579 = stablehlo.reshape %578 : (tensor<16x32x48xf32>) -> tensor<16x32x2x24xf32>
      %580 = stablehlo.multiply %575, %575 : tensor<16x32x2x24xf32>
      %581 = stablehlo.reduce(%580 init: %523) applies stablehlo.add across dimensions = [3] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<16x32x2xf32>
      %582 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x2xf32>
      %583 = stablehlo.multiply %581, %582 : tensor<16x32x2xf32>
      %584 = stablehlo.reshape %583 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %585 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %586 = stablehlo.add %584, %585 : tensor<16x32x2x1xf32>
      %587 = stablehlo.sqrt %586 : tensor<16x32x2x1xf32>
      %588 = stablehlo.broadcast_in_dim %587, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %589 = stablehlo.divide %575, %588 : tensor<16x32x2x24xf32>
      %590 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %591 = stablehlo.add %590, %521#8 : tensor<24xf32>
      %592 = stablehlo.reshape %591 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %593 = stablehlo.broadcast_in_dim %592, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x2x24xf32>
      %594 = stablehlo.multiply %589, %593 : tensor<16x32x2x24xf32>
      %595 = stablehlo.slice %594 [0:16, 0:32, 0:2, 0:12] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %596 = stablehlo.slice %594 [0:16, 0:32, 0:2, 12:24] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %597 = stablehlo.reshape %521#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %598 = stablehlo.reshape %521#3 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %599 = stablehlo.broadcast_in_dim %597, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %600 = stablehlo.multiply %595, %599 : tensor<16x32x2x12xf32>
      %601 = stablehlo.broadcast_in_dim %598, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %602 = stablehlo.multiply %596, %601 : tensor<16x32x2x12xf32>
      %603 = stablehlo.subtract %600, %602 : tensor<16x32x2x12xf32>
      %604 = stablehlo.broadcast_in_dim %597, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %605 = stablehlo.multiply %596, %604 : tensor<16x32x2x12xf32>
      %606 = stablehlo.broadcast_in_dim %598, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %607 = stablehlo.multiply %595, %606 : tensor<16x32x2x12xf32>
      %608 = stablehlo.add %605, %607 : tensor<16x32x2x12xf32>
      %609 = stablehlo.concatenate %603, %608, dim = 3 : (tensor<16x32x2x12xf32>, tensor<16x32x2x12xf32>) -> tensor<16x32x2x24xf32>
      %610 = stablehlo.reshape %571 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %611 = stablehlo.dot_general %610, %609, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %612 = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %613 = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %614 = stablehlo.compare LE, %613, %612, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %615 = stablehlo.subtract %612, %613 : tensor<32x32xi32>
      %616 = stablehlo.broadcast_in_dim %512, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
      %617 = stablehlo.compare LT, %615, %616, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %618 = stablehlo.and %614, %617 : tensor<32x32xi1>
      %619 = stablehlo.broadcast_in_dim %513, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
      %620 = stablehlo.compare NE, %521#1, %619, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
      %621 = stablehlo.reshape %618 : (tensor<32x32xi1>) -> tensor<1x1x32x1x32xi1>
      %622 = stablehlo.broadcast_in_dim %621, dims = [0, 1, 2, 3, 4] : (tensor<1x1x32x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %623 = stablehlo.reshape %620 : (tensor<16x32xi1>) -> tensor<16x1x1x1x32xi1>
      %624 = stablehlo.broadcast_in_dim %623, dims = [0, 1, 2, 3, 4] : (tensor<16x1x1x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %625 = stablehlo.and %622, %624 : tensor<16x2x32x2x32xi1>
      %626 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %627 = stablehlo.multiply %611, %626 : tensor<16x2x32x2x32xf32>
      %628 = stablehlo.broadcast_in_dim %515, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %629 = stablehlo.select %625, %627, %628 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %630 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %631 = stablehlo.reduce(%629 init: %630) applies stablehlo.maximum across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %632 = stablehlo.reshape %631 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %633 = stablehlo.broadcast_in_dim %632, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %634 = stablehlo.subtract %629, %633 : tensor<16x2x32x2x32xf32>
      %635 = stablehlo.exponential %634 : tensor<16x2x32x2x32xf32>
      %636 = stablehlo.reduce(%635 init: %523) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %637 = stablehlo.reshape %636 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %638 = stablehlo.broadcast_in_dim %637, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %639 = stablehlo.divide %635, %638 : tensor<16x2x32x2x32xf32>
      %640 = stablehlo.dot_general %639, %579, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x24xf32>
      %641 = stablehlo.transpose %640, dims = [0, 2, 1, 3, 4] : (tensor<16x2x32x2x24xf32>) -> tensor<16x32x2x2x24xf32>
      %642 = stablehlo.reshape %641 : (tensor<16x32x2x2x24xf32>) -> tensor<16x32x96xf32>
      %643 = sdy.sharding_constraint %521#10 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %644 = sdy.sharding_constraint %643 <@mesh, [{}, {}]> : tensor<64x96xf32>
      %645 = stablehlo.dot_general %642, %644, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x96xf32>, tensor<64x96xf32>) -> tensor<16x32x64xf32>
      %646 = stablehlo.multiply %645, %645 : tensor<16x32x64xf32>
      %647 = stablehlo.reduce(%646 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %648 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %649 = stablehlo.multiply %647, %648 : tensor<16x32xf32>
      %650 = stablehlo.reshape %649 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %651 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %652 = stablehlo.add %650, %651 : tensor<16x32x1xf32>
      %653 = stablehlo.sqrt %652 : tensor<16x32x1xf32>
      %654 = stablehlo.broadcast_in_dim %653, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %655 = stablehlo.divide %645, %654 : tensor<16x32x64xf32>
      %656 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %657 = stablehlo.add %656, %521#11 : tensor<64xf32>
      %658 = stablehlo.reshape %657 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %659 = stablehlo.broadcast_in_dim %658, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %660 = stablehlo.multiply %655, %659 : tensor<16x32x64xf32>
      %661 = stablehlo.add %521#0, %660 : tensor<16x32x64xf32>
      %662 = stablehlo.multiply %661, %661 : tensor<16x32x64xf32>
      %663 = stablehlo.reduce(%662 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %664 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %665 = stablehlo.multiply %663, %664 : tensor<16x32xf32>
      %666 = stablehlo.reshape %665 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %667 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %668 = stablehlo.add %666, %667 : tensor<16x32x1xf32>
      %669 = stablehlo.sqrt %668 : tensor<16x32x1xf32>
      %670 = stablehlo.broadcast_in_dim %669, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %671 = stablehlo.divide %661, %670 : tensor<16x32x64xf32>
      %672 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %673 = stablehlo.add %672, %521#12 : tensor<64xf32>
      %674 = stablehlo.reshape %673 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %675 = stablehlo.broadcast_in_dim %674, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %676 = stablehlo.multiply %671, %675 : tensor<16x32x64xf32>
      %677 = sdy.sharding_constraint %521#13 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %678 = sdy.sharding_constraint %677 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %679 = stablehlo.dot_general %676, %678, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %680 = sdy.sharding_constraint %521#14 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %681 = sdy.sharding_constraint %680 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %682 = stablehlo.dot_general %676, %681, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %683 = stablehlo.multiply %679, %679 : tensor<16x32x64xf32>
      %684 = stablehlo.broadcast_in_dim %516, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %685 = stablehlo.multiply %683, %684 : tensor<16x32x64xf32>
      %686 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %687 = stablehlo.add %686, %685 : tensor<16x32x64xf32>
      %688 = stablehlo.multiply %679, %687 : tensor<16x32x64xf32>
      %689 = stablehlo.broadcast_in_dim %517, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %690 = stablehlo.multiply %688, %689 : tensor<16x32x64xf32>
      %691 = stablehlo.tanh %690 : tensor<16x32x64xf32>
      %692 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %693 = stablehlo.add %692, %691 : tensor<16x32x64xf32>
      %694 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %695 = stablehlo.multiply %693, %694 : tensor<16x32x64xf32>
      %696 = stablehlo.multiply %679, %695 : tensor<16x32x64xf32>
      %697 = stablehlo.multiply %696, %682 : tensor<16x32x64xf32>
      %698 = sdy.sharding_constraint %521#15 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %699 = sdy.sharding_constraint %698 <@mesh, [{}, {}]> : tensor<64x64xf32>
      %700 = stablehlo.dot_general %697, %699, contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %701 = stablehlo.multiply %700, %700 : tensor<16x32x64xf32>
      %702 = stablehlo.reduce(%701 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %703 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %704 = stablehlo.multiply %702, %703 : tensor<16x32xf32>
      %705 = stablehlo.reshape %704 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %706 = stablehlo.broadcast_in_dim %509, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %707 = stablehlo.add %705, %706 : tensor<16x32x1xf32>
      %708 = stablehlo.sqrt %707 : tensor<16x32x1xf32>
      %709 = stablehlo.broadcast_in_dim %708, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %710 = stablehlo.divide %700, %709 : tensor<16x32x64xf32>
      %711 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %712 = stablehlo.add %711, %521#16 : tensor<64xf32>
      %713 = stablehlo.reshape %712 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %714 = sdy.sharding_constraint %521#17 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %715 = stablehlo.broadcast_in_dim %713, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %716 = stablehlo.multiply %714, %715 : tensor<16x32x64xf32>
      %717 = stablehlo.multiply %714, %710 : tensor<16x32x64xf32>
      %718 = stablehlo.reduce(%717 init: %523) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %719 = stablehlo.reshape %718 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %720 = stablehlo.reshape %719 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %721 = stablehlo.broadcast_in_dim %708, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %722 = stablehlo.divide %716, %721 : tensor<16x32x64xf32>
      %723 = stablehlo.multiply %721, %721 : tensor<16x32x64xf32>
      %724 = stablehlo.divide %700, %723 : tensor<16x32x64xf32>
      %725 = stablehlo.multiply %716, %724 : tensor<16x32x64xf32>
      %726 = stablehlo.negate %725 : tensor<16x32x64xf32>
      %727 = stablehlo.reduce(%726 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %728 = stablehlo.reshape %727 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %729 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %730 = stablehlo.divide %729, %708 : tensor<16x32x1xf32>
      %731 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %732 = stablehlo.multiply %730, %731 : tensor<16x32x1xf32>
      %733 = stablehlo.multiply %728, %732 : tensor<16x32x1xf32>
      %734 = stablehlo.reshape %733 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %735 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %736 = stablehlo.multiply %734, %735 : tensor<16x32xf32>
      %737 = stablehlo.reshape %736 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %738 = stablehlo.broadcast_in_dim %737, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %739 = stablehlo.multiply %738, %700 : tensor<16x32x64xf32>
      %740 = stablehlo.multiply %738, %700 : tensor<16x32x64xf32>
      %741 = stablehlo.add %722, %739 : tensor<16x32x64xf32>
      %742 = stablehlo.add %741, %740 : tensor<16x32x64xf32>
      %743 = stablehlo.dot_general %742, %699, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %744 = sdy.manual_computation(%742, %697) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%745: tensor<4x32x64xf32>, %746: tensor<4x32x64xf32>) {
        %747 = stablehlo.dot_general %745, %746, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %748 = "stablehlo.reduce_scatter"(%747) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%749: tensor<f32>, %750: tensor<f32>):
          %751 = stablehlo.add %749, %750 : tensor<f32>
          stablehlo.return %751 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %748 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %752 = stablehlo.multiply %679, %679 : tensor<16x32x64xf32>
      %753 = stablehlo.broadcast_in_dim %516, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %754 = stablehlo.multiply %752, %753 : tensor<16x32x64xf32>
      %755 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %756 = stablehlo.add %755, %754 : tensor<16x32x64xf32>
      %757 = stablehlo.multiply %679, %756 : tensor<16x32x64xf32>
      %758 = stablehlo.broadcast_in_dim %517, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %759 = stablehlo.multiply %757, %758 : tensor<16x32x64xf32>
      %760 = stablehlo.tanh %759 : tensor<16x32x64xf32>
      %761 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %762 = stablehlo.add %761, %760 : tensor<16x32x64xf32>
      %763 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %764 = stablehlo.multiply %762, %763 : tensor<16x32x64xf32>
      %765 = stablehlo.multiply %679, %764 : tensor<16x32x64xf32>
      %766 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %767 = stablehlo.multiply %752, %766 : tensor<16x32x64xf32>
      %768 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %769 = stablehlo.add %768, %767 : tensor<16x32x64xf32>
      %770 = stablehlo.broadcast_in_dim %517, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %771 = stablehlo.multiply %769, %770 : tensor<16x32x64xf32>
      %772 = stablehlo.multiply %760, %760 : tensor<16x32x64xf32>
      %773 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %774 = stablehlo.subtract %773, %772 : tensor<16x32x64xf32>
      %775 = stablehlo.multiply %679, %774 : tensor<16x32x64xf32>
      %776 = stablehlo.multiply %775, %771 : tensor<16x32x64xf32>
      %777 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
      %778 = stablehlo.multiply %776, %777 : tensor<16x32x64xf32>
      %779 = stablehlo.add %764, %778 : tensor<16x32x64xf32>
      %780 = stablehlo.multiply %743, %682 : tensor<16x32x64xf32>
      %781 = stablehlo.multiply %780, %779 : tensor<16x32x64xf32>
      %782 = stablehlo.multiply %743, %765 : tensor<16x32x64xf32>
      %783 = stablehlo.dot_general %782, %681, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %784 = sdy.manual_computation(%782, %676) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%785: tensor<4x32x64xf32>, %786: tensor<4x32x64xf32>) {
        %787 = stablehlo.dot_general %785, %786, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %788 = "stablehlo.reduce_scatter"(%787) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%789: tensor<f32>, %790: tensor<f32>):
          %791 = stablehlo.add %789, %790 : tensor<f32>
          stablehlo.return %791 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %788 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %792 = stablehlo.dot_general %781, %678, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x64xf32>) -> tensor<16x32x64xf32>
      %793 = sdy.manual_computation(%781, %676) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%794: tensor<4x32x64xf32>, %795: tensor<4x32x64xf32>) {
        %796 = stablehlo.dot_general %794, %795, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x64xf32>) -> tensor<64x64xf32>
        %797 = "stablehlo.reduce_scatter"(%796) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%798: tensor<f32>, %799: tensor<f32>):
          %800 = stablehlo.add %798, %799 : tensor<f32>
          stablehlo.return %800 : tensor<f32>
        }) : (tensor<64x64xf32>) -> tensor<16x64xf32>
        sdy.return %797 : tensor<16x64xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x64xf32>) -> tensor<64x64xf32>
      %801 = stablehlo.add %783, %792 : tensor<16x32x64xf32>
      %802 = stablehlo.broadcast_in_dim %674, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %803 = stablehlo.multiply %801, %802 : tensor<16x32x64xf32>
      %804 = stablehlo.multiply %801, %671 : tensor<16x32x64xf32>
      %805 = stablehlo.reduce(%804 init: %523) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %806 = stablehlo.reshape %805 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %807 = stablehlo.reshape %806 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %808 = stablehlo.broadcast_in_dim %669, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %809 = stablehlo.divide %803, %808 : tensor<16x32x64xf32>
      %810 = stablehlo.multiply %808, %808 : tensor<16x32x64xf32>
      %811 = stablehlo.divide %661, %810 : tensor<16x32x64xf32>
      %812 = stablehlo.multiply %803, %811 : tensor<16x32x64xf32>
      %813 = stablehlo.negate %812 : tensor<16x32x64xf32>
      %814 = stablehlo.reduce(%813 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %815 = stablehlo.reshape %814 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %816 = stablehlo.add %714, %809 : tensor<16x32x64xf32>
      %817 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %818 = stablehlo.divide %817, %669 : tensor<16x32x1xf32>
      %819 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %820 = stablehlo.multiply %818, %819 : tensor<16x32x1xf32>
      %821 = stablehlo.multiply %815, %820 : tensor<16x32x1xf32>
      %822 = stablehlo.reshape %821 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %823 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %824 = stablehlo.multiply %822, %823 : tensor<16x32xf32>
      %825 = stablehlo.reshape %824 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %826 = stablehlo.broadcast_in_dim %825, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %827 = stablehlo.multiply %826, %661 : tensor<16x32x64xf32>
      %828 = stablehlo.multiply %826, %661 : tensor<16x32x64xf32>
      %829 = stablehlo.add %816, %827 : tensor<16x32x64xf32>
      %830 = stablehlo.add %829, %828 : tensor<16x32x64xf32>
      %831 = stablehlo.broadcast_in_dim %658, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %832 = stablehlo.multiply %830, %831 : tensor<16x32x64xf32>
      %833 = stablehlo.multiply %830, %655 : tensor<16x32x64xf32>
      %834 = stablehlo.reduce(%833 init: %523) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %835 = stablehlo.reshape %834 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %836 = stablehlo.reshape %835 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %837 = stablehlo.broadcast_in_dim %653, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %838 = stablehlo.divide %832, %837 : tensor<16x32x64xf32>
      %839 = stablehlo.multiply %837, %837 : tensor<16x32x64xf32>
      %840 = stablehlo.divide %645, %839 : tensor<16x32x64xf32>
      %841 = stablehlo.multiply %832, %840 : tensor<16x32x64xf32>
      %842 = stablehlo.negate %841 : tensor<16x32x64xf32>
      %843 = stablehlo.reduce(%842 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %844 = stablehlo.reshape %843 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %845 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %846 = stablehlo.divide %845, %653 : tensor<16x32x1xf32>
      %847 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %848 = stablehlo.multiply %846, %847 : tensor<16x32x1xf32>
      %849 = stablehlo.multiply %844, %848 : tensor<16x32x1xf32>
      %850 = stablehlo.reshape %849 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %851 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %852 = stablehlo.multiply %850, %851 : tensor<16x32xf32>
      %853 = stablehlo.reshape %852 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %854 = stablehlo.broadcast_in_dim %853, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %855 = stablehlo.multiply %854, %645 : tensor<16x32x64xf32>
      %856 = stablehlo.multiply %854, %645 : tensor<16x32x64xf32>
      %857 = stablehlo.add %838, %855 : tensor<16x32x64xf32>
      %858 = stablehlo.add %857, %856 : tensor<16x32x64xf32>
      %859 = stablehlo.dot_general %858, %644, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x64xf32>, tensor<64x96xf32>) -> tensor<16x32x96xf32>
      %860 = sdy.manual_computation(%858, %642) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%861: tensor<4x32x64xf32>, %862: tensor<4x32x96xf32>) {
        %863 = stablehlo.dot_general %861, %862, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x64xf32>, tensor<4x32x96xf32>) -> tensor<64x96xf32>
        %864 = "stablehlo.reduce_scatter"(%863) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%865: tensor<f32>, %866: tensor<f32>):
          %867 = stablehlo.add %865, %866 : tensor<f32>
          stablehlo.return %867 : tensor<f32>
        }) : (tensor<64x96xf32>) -> tensor<16x96xf32>
        sdy.return %864 : tensor<16x96xf32>
      } : (tensor<16x32x64xf32>, tensor<16x32x96xf32>) -> tensor<64x96xf32>
      %868 = stablehlo.reshape %571 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %869 = stablehlo.dot_general %868, %609, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %870 = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %871 = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %872 = stablehlo.compare LE, %871, %870, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %873 = stablehlo.subtract %870, %871 : tensor<32x32xi32>
      %874 = stablehlo.constant dense<16> : tensor<i32>
      %875 = stablehlo.broadcast_in_dim %874, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
      %876 = stablehlo.compare LT, %873, %875, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %877 = stablehlo.and %872, %876 : tensor<32x32xi1>
      %878 = stablehlo.broadcast_in_dim %513, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
      %879 = stablehlo.compare NE, %521#1, %878, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
      %880 = stablehlo.reshape %877 : (tensor<32x32xi1>) -> tensor<1x1x32x1x32xi1>
      %881 = stablehlo.broadcast_in_dim %880, dims = [0, 1, 2, 3, 4] : (tensor<1x1x32x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %882 = stablehlo.reshape %879 : (tensor<16x32xi1>) -> tensor<16x1x1x1x32xi1>
      %883 = stablehlo.broadcast_in_dim %882, dims = [0, 1, 2, 3, 4] : (tensor<16x1x1x1x32xi1>) -> tensor<16x2x32x2x32xi1>
      %884 = stablehlo.and %881, %883 : tensor<16x2x32x2x32xi1>
      %885 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %886 = stablehlo.multiply %869, %885 : tensor<16x2x32x2x32xf32>
      %887 = stablehlo.broadcast_in_dim %515, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %888 = stablehlo.select %884, %886, %887 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %889 = stablehlo.reduce(%888 init: %630) applies stablehlo.maximum across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %890 = stablehlo.reshape %889 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %891 = stablehlo.broadcast_in_dim %890, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %892 = stablehlo.subtract %888, %891 : tensor<16x2x32x2x32xf32>
      %893 = stablehlo.exponential %892 : tensor<16x2x32x2x32xf32>
      %894 = stablehlo.reduce(%893 init: %523) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %895 = stablehlo.reshape %894 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %896 = stablehlo.broadcast_in_dim %895, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %897 = stablehlo.divide %893, %896 : tensor<16x2x32x2x32xf32>
      %898 = stablehlo.reshape %859 : (tensor<16x32x96xf32>) -> tensor<16x32x2x2x24xf32>
      %899 = stablehlo.dot_general %897, %898, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x2x24xf32>) -> tensor<16x2x32x24xf32>
      %900 = stablehlo.transpose %899, dims = [0, 2, 1, 3] : (tensor<16x2x32x24xf32>) -> tensor<16x32x2x24xf32>
      %901 = stablehlo.dot_general %898, %579, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<16x32x2x2x24xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x32xf32>
      %902 = stablehlo.multiply %901, %897 : tensor<16x2x32x2x32xf32>
      %903 = stablehlo.reduce(%902 init: %523) applies stablehlo.add across dimensions = [4] : (tensor<16x2x32x2x32xf32>, tensor<f32>) -> tensor<16x2x32x2xf32>
      %904 = stablehlo.reshape %903 : (tensor<16x2x32x2xf32>) -> tensor<16x2x32x2x1xf32>
      %905 = stablehlo.broadcast_in_dim %904, dims = [0, 1, 2, 3, 4] : (tensor<16x2x32x2x1xf32>) -> tensor<16x2x32x2x32xf32>
      %906 = stablehlo.subtract %901, %905 : tensor<16x2x32x2x32xf32>
      %907 = stablehlo.multiply %897, %906 : tensor<16x2x32x2x32xf32>
      %908 = stablehlo.broadcast_in_dim %514, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %909 = stablehlo.multiply %907, %908 : tensor<16x2x32x2x32xf32>
      %910 = stablehlo.broadcast_in_dim %520, dims = [] : (tensor<f32>) -> tensor<16x2x32x2x32xf32>
      %911 = stablehlo.select %884, %909, %910 : tensor<16x2x32x2x32xi1>, tensor<16x2x32x2x32xf32>
      %912 = stablehlo.dot_general %911, %609, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x24xf32>) -> tensor<16x2x32x2x24xf32>
      %913 = stablehlo.transpose %912, dims = [0, 2, 1, 3, 4] : (tensor<16x2x32x2x24xf32>) -> tensor<16x32x2x2x24xf32>
      %914 = stablehlo.reshape %913 : (tensor<16x32x2x2x24xf32>) -> tensor<16x32x4x24xf32>
      %915 = stablehlo.reshape %571 : (tensor<16x32x4x24xf32>) -> tensor<16x32x2x2x24xf32>
      %916 = stablehlo.dot_general %911, %915, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [HIGHEST, HIGHEST] : (tensor<16x2x32x2x32xf32>, tensor<16x32x2x2x24xf32>) -> tensor<16x2x32x24xf32>
      %917 = stablehlo.transpose %916, dims = [0, 2, 1, 3] : (tensor<16x2x32x24xf32>) -> tensor<16x32x2x24xf32>
      %918 = stablehlo.negate %521#3 : tensor<32x12xf32>
      %919 = stablehlo.slice %917 [0:16, 0:32, 0:2, 0:12] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %920 = stablehlo.slice %917 [0:16, 0:32, 0:2, 12:24] : (tensor<16x32x2x24xf32>) -> tensor<16x32x2x12xf32>
      %921 = stablehlo.reshape %521#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %922 = stablehlo.reshape %918 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %923 = stablehlo.broadcast_in_dim %921, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %924 = stablehlo.multiply %919, %923 : tensor<16x32x2x12xf32>
      %925 = stablehlo.broadcast_in_dim %922, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %926 = stablehlo.multiply %920, %925 : tensor<16x32x2x12xf32>
      %927 = stablehlo.subtract %924, %926 : tensor<16x32x2x12xf32>
      %928 = stablehlo.broadcast_in_dim %921, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %929 = stablehlo.multiply %920, %928 : tensor<16x32x2x12xf32>
      %930 = stablehlo.broadcast_in_dim %922, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x2x12xf32>
      %931 = stablehlo.multiply %919, %930 : tensor<16x32x2x12xf32>
      %932 = stablehlo.add %929, %931 : tensor<16x32x2x12xf32>
      %933 = stablehlo.concatenate %927, %932, dim = 3 : (tensor<16x32x2x12xf32>, tensor<16x32x2x12xf32>) -> tensor<16x32x2x24xf32>
      %934 = stablehlo.broadcast_in_dim %592, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x2x24xf32>
      %935 = stablehlo.multiply %933, %934 : tensor<16x32x2x24xf32>
      %936 = stablehlo.multiply %933, %589 : tensor<16x32x2x24xf32>
      %937 = stablehlo.reduce(%936 init: %523) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<24xf32>
      %938 = stablehlo.reshape %937 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %939 = stablehlo.reshape %938 : (tensor<1x1x1x24xf32>) -> tensor<24xf32>
      %940 = stablehlo.broadcast_in_dim %587, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %941 = stablehlo.divide %935, %940 : tensor<16x32x2x24xf32>
      %942 = stablehlo.multiply %940, %940 : tensor<16x32x2x24xf32>
      %943 = stablehlo.divide %575, %942 : tensor<16x32x2x24xf32>
      %944 = stablehlo.multiply %935, %943 : tensor<16x32x2x24xf32>
      %945 = stablehlo.negate %944 : tensor<16x32x2x24xf32>
      %946 = stablehlo.reduce(%945 init: %523) applies stablehlo.add across dimensions = [3] : (tensor<16x32x2x24xf32>, tensor<f32>) -> tensor<16x32x2xf32>
      %947 = stablehlo.reshape %946 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %948 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %949 = stablehlo.divide %948, %587 : tensor<16x32x2x1xf32>
      %950 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x2x1xf32>
      %951 = stablehlo.multiply %949, %950 : tensor<16x32x2x1xf32>
      %952 = stablehlo.multiply %947, %951 : tensor<16x32x2x1xf32>
      %953 = stablehlo.reshape %952 : (tensor<16x32x2x1xf32>) -> tensor<16x32x2xf32>
      %954 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x2xf32>
      %955 = stablehlo.multiply %953, %954 : tensor<16x32x2xf32>
      %956 = stablehlo.reshape %955 : (tensor<16x32x2xf32>) -> tensor<16x32x2x1xf32>
      %957 = stablehlo.broadcast_in_dim %956, dims = [0, 1, 2, 3] : (tensor<16x32x2x1xf32>) -> tensor<16x32x2x24xf32>
      %958 = stablehlo.multiply %957, %575 : tensor<16x32x2x24xf32>
      %959 = stablehlo.multiply %957, %575 : tensor<16x32x2x24xf32>
      %960 = stablehlo.add %941, %958 : tensor<16x32x2x24xf32>
      %961 = stablehlo.add %960, %959 : tensor<16x32x2x24xf32>
      %962 = stablehlo.reshape %900 : (tensor<16x32x2x24xf32>) -> tensor<16x32x48xf32>
      %963 = stablehlo.dot_general %962, %577, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x48xf32>, tensor<48x64xf32>) -> tensor<16x32x64xf32>
      %964 = sdy.manual_computation(%962, %537) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{}, {"fsdp"}]>] manual_axes={"fsdp"} (%965: tensor<4x32x48xf32>, %966: tensor<4x32x64xf32>) {
        %967 = stablehlo.dot_general %965, %966, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x48xf32>, tensor<4x32x64xf32>) -> tensor<48x64xf32>
        %968 = "stablehlo.reduce_scatter"(%967) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 1 : i64}> ({
        ^bb0(%969: tensor<f32>, %970: tensor<f32>):
          %971 = stablehlo.add %969, %970 : tensor<f32>
          stablehlo.return %971 : tensor<f32>
        }) : (tensor<48x64xf32>) -> tensor<48x16xf32>
        sdy.return %968 : tensor<48x16xf32>
      } : (tensor<16x32x48xf32>, tensor<16x32x64xf32>) -> tensor<48x64xf32>
      %972 = stablehlo.reshape %961 : (tensor<16x32x2x24xf32>) -> tensor<16x32x48xf32>
      %973 = stablehlo.dot_general %972, %573, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x48xf32>, tensor<48x64xf32>) -> tensor<16x32x64xf32>
      %974 = sdy.manual_computation(%972, %537) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{}, {"fsdp"}]>] manual_axes={"fsdp"} (%975: tensor<4x32x48xf32>, %976: tensor<4x32x64xf32>) {
        %977 = stablehlo.dot_general %975, %976, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x48xf32>, tensor<4x32x64xf32>) -> tensor<48x64xf32>
        %978 = "stablehlo.reduce_scatter"(%977) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 1 : i64}> ({
        ^bb0(%979: tensor<f32>, %980: tensor<f32>):
          %981 = stablehlo.add %979, %980 : tensor<f32>
          stablehlo.return %981 : tensor<f32>
        }) : (tensor<48x64xf32>) -> tensor<48x16xf32>
        sdy.return %978 : tensor<48x16xf32>
      } : (tensor<16x32x48xf32>, tensor<16x32x64xf32>) -> tensor<48x64xf32>
      %982 = stablehlo.add %963, %973 : tensor<16x32x64xf32>
      %983 = stablehlo.negate %521#3 : tensor<32x12xf32>
      %984 = stablehlo.slice %914 [0:16, 0:32, 0:4, 0:12] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %985 = stablehlo.slice %914 [0:16, 0:32, 0:4, 12:24] : (tensor<16x32x4x24xf32>) -> tensor<16x32x4x12xf32>
      %986 = stablehlo.reshape %521#2 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %987 = stablehlo.reshape %983 : (tensor<32x12xf32>) -> tensor<1x32x1x12xf32>
      %988 = stablehlo.broadcast_in_dim %986, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %989 = stablehlo.multiply %984, %988 : tensor<16x32x4x12xf32>
      %990 = stablehlo.broadcast_in_dim %987, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %991 = stablehlo.multiply %985, %990 : tensor<16x32x4x12xf32>
      %992 = stablehlo.subtract %989, %991 : tensor<16x32x4x12xf32>
      %993 = stablehlo.broadcast_in_dim %986, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %994 = stablehlo.multiply %985, %993 : tensor<16x32x4x12xf32>
      %995 = stablehlo.broadcast_in_dim %987, dims = [0, 1, 2, 3] : (tensor<1x32x1x12xf32>) -> tensor<16x32x4x12xf32>
      %996 = stablehlo.multiply %984, %995 : tensor<16x32x4x12xf32>
      %997 = stablehlo.add %994, %996 : tensor<16x32x4x12xf32>
      %998 = stablehlo.concatenate %992, %997, dim = 3 : (tensor<16x32x4x12xf32>, tensor<16x32x4x12xf32>) -> tensor<16x32x4x24xf32>
      %999 = stablehlo.broadcast_in_dim %554, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<16x32x4x24xf32>
      %1000 = stablehlo.multiply %998, %999 : tensor<16x32x4x24xf32>
      %1001 = stablehlo.multiply %998, %551 : tensor<16x32x4x24xf32>
      %1002 = stablehlo.reduce(%1001 init: %523) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<24xf32>
      %1003 = stablehlo.reshape %1002 : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
      %1004 = stablehlo.reshape %1003 : (tensor<1x1x1x24xf32>) -> tensor<24xf32>
      %1005 = stablehlo.broadcast_in_dim %549, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %1006 = stablehlo.divide %1000, %1005 : tensor<16x32x4x24xf32>
      %1007 = stablehlo.multiply %1005, %1005 : tensor<16x32x4x24xf32>
      %1008 = stablehlo.divide %541, %1007 : tensor<16x32x4x24xf32>
      %1009 = stablehlo.multiply %1000, %1008 : tensor<16x32x4x24xf32>
      %1010 = stablehlo.negate %1009 : tensor<16x32x4x24xf32>
      %1011 = stablehlo.reduce(%1010 init: %523) applies stablehlo.add across dimensions = [3] : (tensor<16x32x4x24xf32>, tensor<f32>) -> tensor<16x32x4xf32>
      %1012 = stablehlo.reshape %1011 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %1013 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %1014 = stablehlo.divide %1013, %549 : tensor<16x32x4x1xf32>
      %1015 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x4x1xf32>
      %1016 = stablehlo.multiply %1014, %1015 : tensor<16x32x4x1xf32>
      %1017 = stablehlo.multiply %1012, %1016 : tensor<16x32x4x1xf32>
      %1018 = stablehlo.reshape %1017 : (tensor<16x32x4x1xf32>) -> tensor<16x32x4xf32>
      %1019 = stablehlo.broadcast_in_dim %511, dims = [] : (tensor<f32>) -> tensor<16x32x4xf32>
      %1020 = stablehlo.multiply %1018, %1019 : tensor<16x32x4xf32>
      %1021 = stablehlo.reshape %1020 : (tensor<16x32x4xf32>) -> tensor<16x32x4x1xf32>
      %1022 = stablehlo.broadcast_in_dim %1021, dims = [0, 1, 2, 3] : (tensor<16x32x4x1xf32>) -> tensor<16x32x4x24xf32>
      %1023 = stablehlo.multiply %1022, %541 : tensor<16x32x4x24xf32>
      %1024 = stablehlo.multiply %1022, %541 : tensor<16x32x4x24xf32>
      %1025 = stablehlo.add %1006, %1023 : tensor<16x32x4x24xf32>
      %1026 = stablehlo.add %1025, %1024 : tensor<16x32x4x24xf32>
      %1027 = stablehlo.reshape %1026 : (tensor<16x32x4x24xf32>) -> tensor<16x32x96xf32>
      %1028 = stablehlo.dot_general %1027, %539, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<16x32x96xf32>, tensor<96x64xf32>) -> tensor<16x32x64xf32>
      %1029 = sdy.manual_computation(%1027, %537) in_shardings=[<@mesh, [{"fsdp"}, {}, {}]>, <@mesh, [{"fsdp"}, {}, {}]>] out_shardings=[<@mesh, [{"fsdp"}, {}]>] manual_axes={"fsdp"} (%1030: tensor<4x32x96xf32>, %1031: tensor<4x32x64xf32>) {
        %1032 = stablehlo.dot_general %1030, %1031, contracting_dims = [0, 1] x [0, 1], precision = [HIGHEST, HIGHEST] : (tensor<4x32x96xf32>, tensor<4x32x64xf32>) -> tensor<96x64xf32>
        %1033 = "stablehlo.reduce_scatter"(%1032) <{channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids, scatter_dimension = 0 : i64}> ({
        ^bb0(%1034: tensor<f32>, %1035: tensor<f32>):
          %1036 = stablehlo.add %1034, %1035 : tensor<f32>
          stablehlo.return %1036 : tensor<f32>
        }) : (tensor<96x64xf32>) -> tensor<24x64xf32>
        sdy.return %1033 : tensor<24x64xf32>
      } : (tensor<16x32x96xf32>, tensor<16x32x64xf32>) -> tensor<96x64xf32>
      %1037 = stablehlo.add %982, %1028 : tensor<16x32x64xf32>
      %1038 = stablehlo.broadcast_in_dim %535, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<16x32x64xf32>
      %1039 = stablehlo.multiply %1037, %1038 : tensor<16x32x64xf32>
      %1040 = stablehlo.multiply %1037, %532 : tensor<16x32x64xf32>
      %1041 = stablehlo.reduce(%1040 init: %523) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<64xf32>
      %1042 = stablehlo.reshape %1041 : (tensor<64xf32>) -> tensor<1x1x64xf32>
      %1043 = stablehlo.reshape %1042 : (tensor<1x1x64xf32>) -> tensor<64xf32>
      %1044 = stablehlo.broadcast_in_dim %530, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %1045 = stablehlo.divide %1039, %1044 : tensor<16x32x64xf32>
      %1046 = stablehlo.multiply %1044, %1044 : tensor<16x32x64xf32>
      %1047 = stablehlo.divide %521#0, %1046 : tensor<16x32x64xf32>
      %1048 = stablehlo.multiply %1039, %1047 : tensor<16x32x64xf32>
      %1049 = stablehlo.negate %1048 : tensor<16x32x64xf32>
      %1050 = stablehlo.reduce(%1049 init: %523) applies stablehlo.add across dimensions = [2] : (tensor<16x32x64xf32>, tensor<f32>) -> tensor<16x32xf32>
      %1051 = stablehlo.reshape %1050 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %1052 = stablehlo.add %830, %1045 : tensor<16x32x64xf32>
      %1053 = stablehlo.broadcast_in_dim %510, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %1054 = stablehlo.divide %1053, %530 : tensor<16x32x1xf32>
      %1055 = stablehlo.broadcast_in_dim %518, dims = [] : (tensor<f32>) -> tensor<16x32x1xf32>
      %1056 = stablehlo.multiply %1054, %1055 : tensor<16x32x1xf32>
      %1057 = stablehlo.multiply %1051, %1056 : tensor<16x32x1xf32>
      %1058 = stablehlo.reshape %1057 : (tensor<16x32x1xf32>) -> tensor<16x32xf32>
      %1059 = stablehlo.broadcast_in_dim %508, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
      %1060 = stablehlo.multiply %1058, %1059 : tensor<16x32xf32>
      %1061 = stablehlo.reshape %1060 : (tensor<16x32xf32>) -> tensor<16x32x1xf32>
      %1062 = stablehlo.broadcast_in_dim %1061, dims = [0, 1, 2] : (tensor<16x32x1xf32>) -> tensor<16x32x64xf32>
      %1063 = stablehlo.multiply %1062, %521#0 : tensor<16x32x64xf32>
      %1064 = stablehlo.multiply %1062, %521#0 : tensor<16x32x64xf32>
      %1065 = stablehlo.add %1052, %1063 : tensor<16x32x64xf32>
      %1066 = stablehlo.add %1065, %1064 : tensor<16x32x64xf32>
      %1067 = sdy.sharding_constraint %1066 <@mesh, [{"fsdp"}, {}, {}]> : tensor<16x32x64xf32>
      %1068 = stablehlo.constant dense<1> : tensor<i32>
      %1069 = stablehlo.add %436, %1068 : tensor<i32>
      %1070 = stablehlo.reshape %1043 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1071 = stablehlo.dynamic_update_slice %438, %1070, %472, %470 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1072 = sdy.sharding_constraint %1029 <@mesh, [{"fsdp"}, {}]> : tensor<96x64xf32>
      %1073 = stablehlo.reshape %1072 : (tensor<96x64xf32>) -> tensor<1x96x64xf32>
      %1074 = stablehlo.dynamic_update_slice %439, %1073, %472, %470, %470 : (tensor<2x96x64xf32>, tensor<1x96x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x96x64xf32>
      %1075 = sdy.sharding_constraint %1074 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x96x64xf32>
      %1076 = stablehlo.reshape %1004 : (tensor<24xf32>) -> tensor<1x24xf32>
      %1077 = stablehlo.dynamic_update_slice %440, %1076, %472, %470 : (tensor<2x24xf32>, tensor<1x24xf32>, tensor<i32>, tensor<i32>) -> tensor<2x24xf32>
      %1078 = sdy.sharding_constraint %974 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %1079 = stablehlo.reshape %1078 : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
      %1080 = stablehlo.dynamic_update_slice %441, %1079, %472, %470, %470 : (tensor<2x48x64xf32>, tensor<1x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x48x64xf32>
      %1081 = sdy.sharding_constraint %1080 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
      %1082 = stablehlo.reshape %939 : (tensor<24xf32>) -> tensor<1x24xf32>
      %1083 = stablehlo.dynamic_update_slice %442, %1082, %472, %470 : (tensor<2x24xf32>, tensor<1x24xf32>, tensor<i32>, tensor<i32>) -> tensor<2x24xf32>
      %1084 = sdy.sharding_constraint %964 <@mesh, [{}, {"fsdp"}]> : tensor<48x64xf32>
      %1085 = stablehlo.reshape %1084 : (tensor<48x64xf32>) -> tensor<1x48x64xf32>
      %1086 = stablehlo.dynamic_update_slice %443, %1085, %472, %470, %470 : (tensor<2x48x64xf32>, tensor<1x48x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x48x64xf32>
      %1087 = sdy.sharding_constraint %1086 <@mesh, [{}, {}, {"fsdp"}]> : tensor<2x48x64xf32>
      %1088 = sdy.sharding_constraint %860 <@mesh, [{"fsdp"}, {}]> : tensor<64x96xf32>
      %1089 = stablehlo.reshape %1088 : (tensor<64x96xf32>) -> tensor<1x64x96xf32>
      %1090 = stablehlo.dynamic_update_slice %444, %1089, %472, %470, %470 : (tensor<2x64x96xf32>, tensor<1x64x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x96xf32>
      %1091 = sdy.sharding_constraint %1090 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x96xf32>
      %1092 = stablehlo.reshape %836 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1093 = stablehlo.dynamic_update_slice %445, %1092, %472, %470 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1094 = stablehlo.reshape %807 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1095 = stablehlo.dynamic_update_slice %446, %1094, %472, %470 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      %1096 = sdy.sharding_constraint %793 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1097 = stablehlo.reshape %1096 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1098 = stablehlo.dynamic_update_slice %447, %1097, %472, %470, %470 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1099 = sdy.sharding_constraint %1098 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1100 = sdy.sharding_constraint %784 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1101 = stablehlo.reshape %1100 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1102 = stablehlo.dynamic_update_slice %448, %1101, %472, %470, %470 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1103 = sdy.sharding_constraint %1102 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1104 = sdy.sharding_constraint %744 <@mesh, [{"fsdp"}, {}]> : tensor<64x64xf32>
      %1105 = stablehlo.reshape %1104 : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %1106 = stablehlo.dynamic_update_slice %449, %1105, %472, %470, %470 : (tensor<2x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x64xf32>
      %1107 = sdy.sharding_constraint %1106 <@mesh, [{}, {"fsdp"}, {}]> : tensor<2x64x64xf32>
      %1108 = stablehlo.reshape %720 : (tensor<64xf32>) -> tensor<1x64xf32>
      %1109 = stablehlo.dynamic_update_slice %450, %1108, %472, %470 : (tensor<2x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<2x64xf32>
      stablehlo.return %1069, %1067, %1071, %1075, %1077, %1081, %1083, %1087, %1091, %1093, %1095, %1099, %1103, %1107, %1109, %451, %452, %453, %454, %455, %456, %457, %458, %459, %460, %461, %462, %463, %464, %465, %466, %467 : tensor<i32>, tensor<16x32x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x16x32x64xf32>, tensor<16x32xi32>, tensor<32x12xf32>, tensor<32x12xf32>
    }
    %1110 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<16x32x64xf32>
    %1111 = stablehlo.multiply %435#1, %1110 : tensor<16x32x64xf32>
    %1112 = sdy.sharding_constraint %1111 <@mesh, [{}, {}, {}]> : tensor<16x32x64xf32>
    %1113 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1114 = sdy.sharding_constraint %1113 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %1115 = sdy.sharding_constraint %arg45 <@mesh, [{}, {}]> : tensor<16x32xi32>
    %1116 = stablehlo.reshape %1115 : (tensor<16x32xi32>) -> tensor<16x32x1xi32>
    %1117 = "stablehlo.scatter"(%1114, %1116, %1112) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%1118: tensor<f32>, %1119: tensor<f32>):
      %1120 = stablehlo.add %1118, %1119 : tensor<f32>
      stablehlo.return %1120 : tensor<f32>
    }) : (tensor<512x64xf32>, tensor<16x32x1xi32>, tensor<16x32x64xf32>) -> tensor<512x64xf32>
    %1121 = sdy.sharding_constraint %1117 <@mesh, [{"fsdp"}, {}]> : tensor<512x64xf32>
    %1122 = stablehlo.add %372, %1121 : tensor<512x64xf32>
    %1123 = stablehlo.multiply %1122, %1122 : tensor<512x64xf32>
    %1124 = stablehlo.reduce(%1123 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x64xf32>, tensor<f32>) -> tensor<f32>
    %1125 = stablehlo.add %22, %1124 : tensor<f32>
    %1126 = stablehlo.multiply %378, %378 : tensor<64xf32>
    %1127 = stablehlo.reduce(%1126 init: %16) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %1128 = stablehlo.add %1125, %1127 : tensor<f32>
    %1129 = stablehlo.multiply %435#2, %435#2 : tensor<2x64xf32>
    %1130 = stablehlo.reduce(%1129 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1131 = stablehlo.add %1128, %1130 : tensor<f32>
    %1132 = stablehlo.multiply %435#3, %435#3 : tensor<2x96x64xf32>
    %1133 = stablehlo.reduce(%1132 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x96x64xf32>, tensor<f32>) -> tensor<f32>
    %1134 = stablehlo.add %1131, %1133 : tensor<f32>
    %1135 = stablehlo.multiply %435#4, %435#4 : tensor<2x24xf32>
    %1136 = stablehlo.reduce(%1135 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x24xf32>, tensor<f32>) -> tensor<f32>
    %1137 = stablehlo.add %1134, %1136 : tensor<f32>
    %1138 = stablehlo.multiply %435#5, %435#5 : tensor<2x48x64xf32>
    %1139 = stablehlo.reduce(%1138 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x48x64xf32>, tensor<f32>) -> tensor<f32>
    %1140 = stablehlo.add %1137, %1139 : tensor<f32>
    %1141 = stablehlo.multiply %435#6, %435#6 : tensor<2x24xf32>
    %1142 = stablehlo.reduce(%1141 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x24xf32>, tensor<f32>) -> tensor<f32>
    %1143 = stablehlo.add %1140, %1142 : tensor<f32>
    %1144 = stablehlo.multiply %435#7, %435#7 : tensor<2x48x64xf32>
    %1145 = stablehlo.reduce(%1144 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x48x64xf32>, tensor<f32>) -> tensor<f32>
    %1146 = stablehlo.add %1143, %1145 : tensor<f32>
    %1147 = stablehlo.multiply %435#8, %435#8 : tensor<2x64x96xf32>
    %1148 = stablehlo.reduce(%1147 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x96xf32>, tensor<f32>) -> tensor<f32>
    %1149 = stablehlo.add %1146, %1148 : tensor<f32>
    %1150 = stablehlo.multiply %435#9, %435#9 : tensor<2x64xf32>
    %1151 = stablehlo.reduce(%1150 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1152 = stablehlo.add %1149, %1151 : tensor<f32>
    %1153 = stablehlo.multiply %435#10, %435#10 : tensor<2x64xf32>
    %1154 = stablehlo.reduce(%1153 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1155 = stablehlo.add %1152, %1154 : tensor<f32>
    %1156 = stablehlo.multiply %435#11, %435#11 : tensor<2x64x64xf32>
    %1157 = stablehlo.reduce(%1156 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1158 = stablehlo.add %1155, %1157 : tensor<f32>
    %1159 = stablehlo.multiply %435#12, %435#12 : tensor<2x64x64xf32>
    %1160 = stablehlo.reduce(%1159 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1161 = stablehlo.add %1158, %1160 : tensor<f32>
    %1162 = stablehlo.multiply %435#13, %435#13 : tensor<2x64x64xf32>
    %1163 = stablehlo.reduce(%1162 init: %16) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x64x64xf32>, tensor<f32>) -> tensor<f32>
    %1164 = stablehlo.add %1161, %1163 : tensor<f32>
    %1165 = stablehlo.multiply %435#14, %435#14 : tensor<2x64xf32>
    %1166 = stablehlo.reduce(%1165 init: %16) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
    %1167 = stablehlo.add %1164, %1166 : tensor<f32>
    %1168 = stablehlo.sqrt %1167 : tensor<f32>
    %1169 = stablehlo.slice %arg48 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
    %1170 = stablehlo.reshape %1169 : (tensor<1xf32>) -> tensor<f32>
    %1171 = stablehlo.slice %arg48 [1:2] : (tensor<8xf32>) -> tensor<1xf32>
    %1172 = stablehlo.reshape %1171 : (tensor<1xf32>) -> tensor<f32>
    %1173 = stablehlo.slice %arg48 [3:4] : (tensor<8xf32>) -> tensor<1xf32>
    %1174 = stablehlo.reshape %1173 : (tensor<1xf32>) -> tensor<f32>
    %1175 = stablehlo.slice %arg48 [4:5] : (tensor<8xf32>) -> tensor<1xf32>
    %1176 = stablehlo.reshape %1175 : (tensor<1xf32>) -> tensor<f32>
    %1177 = stablehlo.slice %arg48 [5:6] : (tensor<8xf32>) -> tensor<1xf32>
    %1178 = stablehlo.reshape %1177 : (tensor<1xf32>) -> tensor<f32>
    %1179 = stablehlo.slice %arg48 [6:7] : (tensor<8xf32>) -> tensor<1xf32>
    %1180 = stablehlo.reshape %1179 : (tensor<1xf32>) -> tensor<f32>
    %1181 = stablehlo.slice %arg48 [7:8] : (tensor<8xf32>) -> tensor<1xf32>
    %1182 = stablehlo.reshape %1181 : (tensor<1xf32>) -> tensor<f32>
    %1183 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1184 = stablehlo.multiply %arg0, %1183 : tensor<512x64xf32>
    %1185 = stablehlo.subtract %1122, %arg1 : tensor<512x64xf32>
    %1186 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1187 = stablehlo.multiply %1185, %1186 : tensor<512x64xf32>
    %1188 = stablehlo.add %arg1, %1187 : tensor<512x64xf32>
    %1189 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1190 = stablehlo.multiply %arg2, %1189 : tensor<512x64xf32>
    %1191 = stablehlo.multiply %1122, %1122 : tensor<512x64xf32>
    %1192 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1193 = stablehlo.multiply %1191, %1192 : tensor<512x64xf32>
    %1194 = stablehlo.add %1190, %1193 : tensor<512x64xf32>
    %1195 = stablehlo.sqrt %1194 : tensor<512x64xf32>
    %1196 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1197 = stablehlo.divide %1195, %1196 : tensor<512x64xf32>
    %1198 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1199 = stablehlo.add %1197, %1198 : tensor<512x64xf32>
    %1200 = stablehlo.divide %1188, %1199 : tensor<512x64xf32>
    %1201 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<512x64xf32>
    %1202 = stablehlo.multiply %1200, %1201 : tensor<512x64xf32>
    %1203 = stablehlo.subtract %1184, %1202 : tensor<512x64xf32>
    %1204 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1205 = stablehlo.multiply %arg3, %1204 : tensor<64xf32>
    %1206 = stablehlo.subtract %378, %arg4 : tensor<64xf32>
    %1207 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1208 = stablehlo.multiply %1206, %1207 : tensor<64xf32>
    %1209 = stablehlo.add %arg4, %1208 : tensor<64xf32>
    %1210 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1211 = stablehlo.multiply %arg5, %1210 : tensor<64xf32>
    %1212 = stablehlo.multiply %378, %378 : tensor<64xf32>
    %1213 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1214 = stablehlo.multiply %1212, %1213 : tensor<64xf32>
    %1215 = stablehlo.add %1211, %1214 : tensor<64xf32>
    %1216 = stablehlo.sqrt %1215 : tensor<64xf32>
    %1217 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1218 = stablehlo.divide %1216, %1217 : tensor<64xf32>
    %1219 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1220 = stablehlo.add %1218, %1219 : tensor<64xf32>
    %1221 = stablehlo.divide %1209, %1220 : tensor<64xf32>
    %1222 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %1223 = stablehlo.multiply %1221, %1222 : tensor<64xf32>
    %1224 = stablehlo.subtract %1205, %1223 : tensor<64xf32>
    %1225 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1226 = stablehlo.multiply %arg6, %1225 : tensor<2x64xf32>
    %1227 = stablehlo.subtract %435#2, %arg7 : tensor<2x64xf32>
    %1228 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1229 = stablehlo.multiply %1227, %1228 : tensor<2x64xf32>
    %1230 = stablehlo.add %arg7, %1229 : tensor<2x64xf32>
    %1231 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1232 = stablehlo.multiply %arg8, %1231 : tensor<2x64xf32>
    %1233 = stablehlo.multiply %435#2, %435#2 : tensor<2x64xf32>
    %1234 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1235 = stablehlo.multiply %1233, %1234 : tensor<2x64xf32>
    %1236 = stablehlo.add %1232, %1235 : tensor<2x64xf32>
    %1237 = stablehlo.sqrt %1236 : tensor<2x64xf32>
    %1238 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1239 = stablehlo.divide %1237, %1238 : tensor<2x64xf32>
    %1240 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1241 = stablehlo.add %1239, %1240 : tensor<2x64xf32>
    %1242 = stablehlo.divide %1230, %1241 : tensor<2x64xf32>
    %1243 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1244 = stablehlo.multiply %1242, %1243 : tensor<2x64xf32>
    %1245 = stablehlo.subtract %1226, %1244 : tensor<2x64xf32>
    %1246 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1247 = stablehlo.multiply %arg9, %1246 : tensor<2x96x64xf32>
    %1248 = stablehlo.subtract %435#3, %arg10 : tensor<2x96x64xf32>
    %1249 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1250 = stablehlo.multiply %1248, %1249 : tensor<2x96x64xf32>
    %1251 = stablehlo.add %arg10, %1250 : tensor<2x96x64xf32>
    %1252 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1253 = stablehlo.multiply %arg11, %1252 : tensor<2x96x64xf32>
    %1254 = stablehlo.multiply %435#3, %435#3 : tensor<2x96x64xf32>
    %1255 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1256 = stablehlo.multiply %1254, %1255 : tensor<2x96x64xf32>
    %1257 = stablehlo.add %1253, %1256 : tensor<2x96x64xf32>
    %1258 = stablehlo.sqrt %1257 : tensor<2x96x64xf32>
    %1259 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1260 = stablehlo.divide %1258, %1259 : tensor<2x96x64xf32>
    %1261 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1262 = stablehlo.add %1260, %1261 : tensor<2x96x64xf32>
    %1263 = stablehlo.divide %1251, %1262 : tensor<2x96x64xf32>
    %1264 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x96x64xf32>
    %1265 = stablehlo.multiply %1263, %1264 : tensor<2x96x64xf32>
    %1266 = stablehlo.subtract %1247, %1265 : tensor<2x96x64xf32>
    %1267 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1268 = stablehlo.multiply %arg12, %1267 : tensor<2x24xf32>
    %1269 = stablehlo.subtract %435#4, %arg13 : tensor<2x24xf32>
    %1270 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1271 = stablehlo.multiply %1269, %1270 : tensor<2x24xf32>
    %1272 = stablehlo.add %arg13, %1271 : tensor<2x24xf32>
    %1273 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1274 = stablehlo.multiply %arg14, %1273 : tensor<2x24xf32>
    %1275 = stablehlo.multiply %435#4, %435#4 : tensor<2x24xf32>
    %1276 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1277 = stablehlo.multiply %1275, %1276 : tensor<2x24xf32>
    %1278 = stablehlo.add %1274, %1277 : tensor<2x24xf32>
    %1279 = stablehlo.sqrt %1278 : tensor<2x24xf32>
    %1280 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1281 = stablehlo.divide %1279, %1280 : tensor<2x24xf32>
    %1282 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1283 = stablehlo.add %1281, %1282 : tensor<2x24xf32>
    %1284 = stablehlo.divide %1272, %1283 : tensor<2x24xf32>
    %1285 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1286 = stablehlo.multiply %1284, %1285 : tensor<2x24xf32>
    %1287 = stablehlo.subtract %1268, %1286 : tensor<2x24xf32>
    %1288 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1289 = stablehlo.multiply %arg15, %1288 : tensor<2x48x64xf32>
    %1290 = stablehlo.subtract %435#5, %arg16 : tensor<2x48x64xf32>
    %1291 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1292 = stablehlo.multiply %1290, %1291 : tensor<2x48x64xf32>
    %1293 = stablehlo.add %arg16, %1292 : tensor<2x48x64xf32>
    %1294 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1295 = stablehlo.multiply %arg17, %1294 : tensor<2x48x64xf32>
    %1296 = stablehlo.multiply %435#5, %435#5 : tensor<2x48x64xf32>
    %1297 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1298 = stablehlo.multiply %1296, %1297 : tensor<2x48x64xf32>
    %1299 = stablehlo.add %1295, %1298 : tensor<2x48x64xf32>
    %1300 = stablehlo.sqrt %1299 : tensor<2x48x64xf32>
    %1301 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1302 = stablehlo.divide %1300, %1301 : tensor<2x48x64xf32>
    %1303 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1304 = stablehlo.add %1302, %1303 : tensor<2x48x64xf32>
    %1305 = stablehlo.divide %1293, %1304 : tensor<2x48x64xf32>
    %1306 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1307 = stablehlo.multiply %1305, %1306 : tensor<2x48x64xf32>
    %1308 = stablehlo.subtract %1289, %1307 : tensor<2x48x64xf32>
    %1309 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1310 = stablehlo.multiply %arg18, %1309 : tensor<2x24xf32>
    %1311 = stablehlo.subtract %435#6, %arg19 : tensor<2x24xf32>
    %1312 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1313 = stablehlo.multiply %1311, %1312 : tensor<2x24xf32>
    %1314 = stablehlo.add %arg19, %1313 : tensor<2x24xf32>
    %1315 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1316 = stablehlo.multiply %arg20, %1315 : tensor<2x24xf32>
    %1317 = stablehlo.multiply %435#6, %435#6 : tensor<2x24xf32>
    %1318 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1319 = stablehlo.multiply %1317, %1318 : tensor<2x24xf32>
    %1320 = stablehlo.add %1316, %1319 : tensor<2x24xf32>
    %1321 = stablehlo.sqrt %1320 : tensor<2x24xf32>
    %1322 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1323 = stablehlo.divide %1321, %1322 : tensor<2x24xf32>
    %1324 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1325 = stablehlo.add %1323, %1324 : tensor<2x24xf32>
    %1326 = stablehlo.divide %1314, %1325 : tensor<2x24xf32>
    %1327 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x24xf32>
    %1328 = stablehlo.multiply %1326, %1327 : tensor<2x24xf32>
    %1329 = stablehlo.subtract %1310, %1328 : tensor<2x24xf32>
    %1330 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1331 = stablehlo.multiply %arg21, %1330 : tensor<2x48x64xf32>
    %1332 = stablehlo.subtract %435#7, %arg22 : tensor<2x48x64xf32>
    %1333 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1334 = stablehlo.multiply %1332, %1333 : tensor<2x48x64xf32>
    %1335 = stablehlo.add %arg22, %1334 : tensor<2x48x64xf32>
    %1336 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1337 = stablehlo.multiply %arg23, %1336 : tensor<2x48x64xf32>
    %1338 = stablehlo.multiply %435#7, %435#7 : tensor<2x48x64xf32>
    %1339 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1340 = stablehlo.multiply %1338, %1339 : tensor<2x48x64xf32>
    %1341 = stablehlo.add %1337, %1340 : tensor<2x48x64xf32>
    %1342 = stablehlo.sqrt %1341 : tensor<2x48x64xf32>
    %1343 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1344 = stablehlo.divide %1342, %1343 : tensor<2x48x64xf32>
    %1345 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1346 = stablehlo.add %1344, %1345 : tensor<2x48x64xf32>
    %1347 = stablehlo.divide %1335, %1346 : tensor<2x48x64xf32>
    %1348 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x48x64xf32>
    %1349 = stablehlo.multiply %1347, %1348 : tensor<2x48x64xf32>
    %1350 = stablehlo.subtract %1331, %1349 : tensor<2x48x64xf32>
    %1351 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1352 = stablehlo.multiply %arg24, %1351 : tensor<2x64x96xf32>
    %1353 = stablehlo.subtract %435#8, %arg25 : tensor<2x64x96xf32>
    %1354 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1355 = stablehlo.multiply %1353, %1354 : tensor<2x64x96xf32>
    %1356 = stablehlo.add %arg25, %1355 : tensor<2x64x96xf32>
    %1357 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1358 = stablehlo.multiply %arg26, %1357 : tensor<2x64x96xf32>
    %1359 = stablehlo.multiply %435#8, %435#8 : tensor<2x64x96xf32>
    %1360 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1361 = stablehlo.multiply %1359, %1360 : tensor<2x64x96xf32>
    %1362 = stablehlo.add %1358, %1361 : tensor<2x64x96xf32>
    %1363 = stablehlo.sqrt %1362 : tensor<2x64x96xf32>
    %1364 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1365 = stablehlo.divide %1363, %1364 : tensor<2x64x96xf32>
    %1366 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1367 = stablehlo.add %1365, %1366 : tensor<2x64x96xf32>
    %1368 = stablehlo.divide %1356, %1367 : tensor<2x64x96xf32>
    %1369 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x96xf32>
    %1370 = stablehlo.multiply %1368, %1369 : tensor<2x64x96xf32>
    %1371 = stablehlo.subtract %1352, %1370 : tensor<2x64x96xf32>
    %1372 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1373 = stablehlo.multiply %arg27, %1372 : tensor<2x64xf32>
    %1374 = stablehlo.subtract %435#9, %arg28 : tensor<2x64xf32>
    %1375 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1376 = stablehlo.multiply %1374, %1375 : tensor<2x64xf32>
    %1377 = stablehlo.add %arg28, %1376 : tensor<2x64xf32>
    %1378 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1379 = stablehlo.multiply %arg29, %1378 : tensor<2x64xf32>
    %1380 = stablehlo.multiply %435#9, %435#9 : tensor<2x64xf32>
    %1381 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1382 = stablehlo.multiply %1380, %1381 : tensor<2x64xf32>
    %1383 = stablehlo.add %1379, %1382 : tensor<2x64xf32>
    %1384 = stablehlo.sqrt %1383 : tensor<2x64xf32>
    %1385 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1386 = stablehlo.divide %1384, %1385 : tensor<2x64xf32>
    %1387 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1388 = stablehlo.add %1386, %1387 : tensor<2x64xf32>
    %1389 = stablehlo.divide %1377, %1388 : tensor<2x64xf32>
    %1390 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1391 = stablehlo.multiply %1389, %1390 : tensor<2x64xf32>
    %1392 = stablehlo.subtract %1373, %1391 : tensor<2x64xf32>
    %1393 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1394 = stablehlo.multiply %arg30, %1393 : tensor<2x64xf32>
    %1395 = stablehlo.subtract %435#10, %arg31 : tensor<2x64xf32>
    %1396 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1397 = stablehlo.multiply %1395, %1396 : tensor<2x64xf32>
    %1398 = stablehlo.add %arg31, %1397 : tensor<2x64xf32>
    %1399 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1400 = stablehlo.multiply %arg32, %1399 : tensor<2x64xf32>
    %1401 = stablehlo.multiply %435#10, %435#10 : tensor<2x64xf32>
    %1402 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1403 = stablehlo.multiply %1401, %1402 : tensor<2x64xf32>
    %1404 = stablehlo.add %1400, %1403 : tensor<2x64xf32>
    %1405 = stablehlo.sqrt %1404 : tensor<2x64xf32>
    %1406 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1407 = stablehlo.divide %1405, %1406 : tensor<2x64xf32>
    %1408 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1409 = stablehlo.add %1407, %1408 : tensor<2x64xf32>
    %1410 = stablehlo.divide %1398, %1409 : tensor<2x64xf32>
    %1411 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1412 = stablehlo.multiply %1410, %1411 : tensor<2x64xf32>
    %1413 = stablehlo.subtract %1394, %1412 : tensor<2x64xf32>
    %1414 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1415 = stablehlo.multiply %arg33, %1414 : tensor<2x64x64xf32>
    %1416 = stablehlo.subtract %435#11, %arg34 : tensor<2x64x64xf32>
    %1417 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1418 = stablehlo.multiply %1416, %1417 : tensor<2x64x64xf32>
    %1419 = stablehlo.add %arg34, %1418 : tensor<2x64x64xf32>
    %1420 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1421 = stablehlo.multiply %arg35, %1420 : tensor<2x64x64xf32>
    %1422 = stablehlo.multiply %435#11, %435#11 : tensor<2x64x64xf32>
    %1423 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1424 = stablehlo.multiply %1422, %1423 : tensor<2x64x64xf32>
    %1425 = stablehlo.add %1421, %1424 : tensor<2x64x64xf32>
    %1426 = stablehlo.sqrt %1425 : tensor<2x64x64xf32>
    %1427 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1428 = stablehlo.divide %1426, %1427 : tensor<2x64x64xf32>
    %1429 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1430 = stablehlo.add %1428, %1429 : tensor<2x64x64xf32>
    %1431 = stablehlo.divide %1419, %1430 : tensor<2x64x64xf32>
    %1432 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1433 = stablehlo.multiply %1431, %1432 : tensor<2x64x64xf32>
    %1434 = stablehlo.subtract %1415, %1433 : tensor<2x64x64xf32>
    %1435 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1436 = stablehlo.multiply %arg36, %1435 : tensor<2x64x64xf32>
    %1437 = stablehlo.subtract %435#12, %arg37 : tensor<2x64x64xf32>
    %1438 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1439 = stablehlo.multiply %1437, %1438 : tensor<2x64x64xf32>
    %1440 = stablehlo.add %arg37, %1439 : tensor<2x64x64xf32>
    %1441 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1442 = stablehlo.multiply %arg38, %1441 : tensor<2x64x64xf32>
    %1443 = stablehlo.multiply %435#12, %435#12 : tensor<2x64x64xf32>
    %1444 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1445 = stablehlo.multiply %1443, %1444 : tensor<2x64x64xf32>
    %1446 = stablehlo.add %1442, %1445 : tensor<2x64x64xf32>
    %1447 = stablehlo.sqrt %1446 : tensor<2x64x64xf32>
    %1448 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1449 = stablehlo.divide %1447, %1448 : tensor<2x64x64xf32>
    %1450 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1451 = stablehlo.add %1449, %1450 : tensor<2x64x64xf32>
    %1452 = stablehlo.divide %1440, %1451 : tensor<2x64x64xf32>
    %1453 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1454 = stablehlo.multiply %1452, %1453 : tensor<2x64x64xf32>
    %1455 = stablehlo.subtract %1436, %1454 : tensor<2x64x64xf32>
    %1456 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1457 = stablehlo.multiply %arg39, %1456 : tensor<2x64x64xf32>
    %1458 = stablehlo.subtract %435#13, %arg40 : tensor<2x64x64xf32>
    %1459 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1460 = stablehlo.multiply %1458, %1459 : tensor<2x64x64xf32>
    %1461 = stablehlo.add %arg40, %1460 : tensor<2x64x64xf32>
    %1462 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1463 = stablehlo.multiply %arg41, %1462 : tensor<2x64x64xf32>
    %1464 = stablehlo.multiply %435#13, %435#13 : tensor<2x64x64xf32>
    %1465 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1466 = stablehlo.multiply %1464, %1465 : tensor<2x64x64xf32>
    %1467 = stablehlo.add %1463, %1466 : tensor<2x64x64xf32>
    %1468 = stablehlo.sqrt %1467 : tensor<2x64x64xf32>
    %1469 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1470 = stablehlo.divide %1468, %1469 : tensor<2x64x64xf32>
    %1471 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1472 = stablehlo.add %1470, %1471 : tensor<2x64x64xf32>
    %1473 = stablehlo.divide %1461, %1472 : tensor<2x64x64xf32>
    %1474 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64x64xf32>
    %1475 = stablehlo.multiply %1473, %1474 : tensor<2x64x64xf32>
    %1476 = stablehlo.subtract %1457, %1475 : tensor<2x64x64xf32>
    %1477 = stablehlo.broadcast_in_dim %1170, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1478 = stablehlo.multiply %arg42, %1477 : tensor<2x64xf32>
    %1479 = stablehlo.subtract %435#14, %arg43 : tensor<2x64xf32>
    %1480 = stablehlo.broadcast_in_dim %1172, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1481 = stablehlo.multiply %1479, %1480 : tensor<2x64xf32>
    %1482 = stablehlo.add %arg43, %1481 : tensor<2x64xf32>
    %1483 = stablehlo.broadcast_in_dim %1174, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1484 = stablehlo.multiply %arg44, %1483 : tensor<2x64xf32>
    %1485 = stablehlo.multiply %435#14, %435#14 : tensor<2x64xf32>
    %1486 = stablehlo.broadcast_in_dim %1176, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1487 = stablehlo.multiply %1485, %1486 : tensor<2x64xf32>
    %1488 = stablehlo.add %1484, %1487 : tensor<2x64xf32>
    %1489 = stablehlo.sqrt %1488 : tensor<2x64xf32>
    %1490 = stablehlo.broadcast_in_dim %1178, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1491 = stablehlo.divide %1489, %1490 : tensor<2x64xf32>
    %1492 = stablehlo.broadcast_in_dim %1180, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1493 = stablehlo.add %1491, %1492 : tensor<2x64xf32>
    %1494 = stablehlo.divide %1482, %1493 : tensor<2x64xf32>
    %1495 = stablehlo.broadcast_in_dim %1182, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
    %1496 = stablehlo.multiply %1494, %1495 : tensor<2x64xf32>
    %1497 = stablehlo.subtract %1478, %1496 : tensor<2x64xf32>
    return %1203, %1188, %1194, %1224, %1209, %1215, %1245, %1230, %1236, %1266, %1251, %1257, %1287, %1272, %1278, %1308, %1293, %1299, %1329, %1314, %1320, %1350, %1335, %1341, %1371, %1356, %1362, %1392, %1377, %1383, %1413, %1398, %1404, %1434, %1419, %1425, %1455, %1440, %1446, %1476, %1461, %1467, %1497, %1482, %1488, %366, %318, %1168 : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x24xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x48x64xf32>, tensor<2x64x96xf32>, tensor<2x64x96xf32>, tensor<2x64x96xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}
