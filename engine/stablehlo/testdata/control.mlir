module @control attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %arg0: tensor<4xf32>, // "x"
      %arg1: tensor<i1> // "a \22quoted\22\0Aflag"
  ) -> (
      tensor<4xf32>,
      tensor<4xf32>,
      tensor<i32>
  ) {
    %0:2 = func.call @twice(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1 = stablehlo.constant dense<[1.0e-01, 1.0, -5.0e-01, 2.0]> : tensor<4xf32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3:2 = stablehlo.while(%4 = %2, %5 = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %6 = stablehlo.constant dense<3> : tensor<i32>
      %7 = stablehlo.compare LT, %4, %6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %8 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %4, %8 : tensor<i32>
      %10 = stablehlo.add %5, %0#1 : tensor<4xf32>
      %11 = "stablehlo.if"(%arg1) ({
        %12 = stablehlo.constant dense<0> : tensor<i32>
        %13:2 = stablehlo.while(%14 = %12, %15 = %5) : tensor<i32>, tensor<4xf32>
        cond {
          %16 = stablehlo.constant dense<2> : tensor<i32>
          %17 = stablehlo.compare LT, %14, %16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %17 : tensor<i1>
        } do {
          %18 = stablehlo.constant dense<1> : tensor<i32>
          %19 = stablehlo.add %14, %18 : tensor<i32>
          %20 = stablehlo.add %15, %10 : tensor<4xf32>
          %21 = stablehlo.multiply %20, %1 : tensor<4xf32>
          stablehlo.return %19, %21 : tensor<i32>, tensor<4xf32>
        }
        stablehlo.return %13#1 : tensor<4xf32>
      }, {
        stablehlo.return %0#0 : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      stablehlo.return %9, %11 : tensor<i32>, tensor<4xf32>
    }
    %22 = "stablehlo.sort"(%3#1) <{dimension = 0 : i64, is_stable = false}> ({
    ^bb0(%23: tensor<f32>, %24: tensor<f32>):
      %25 = stablehlo.compare GT, %23, %24, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %25 : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %26 = stablehlo.iota dim = 0 : tensor<4xi32>
    %27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %28 = stablehlo.constant dense<0> : tensor<i32>
    %29:2 = "stablehlo.reduce"(%arg0, %26, %27, %28) <{dimensions = array<i64: 0>}> ({
    ^bb0(%30: tensor<f32>, %31: tensor<i32>, %32: tensor<f32>, %33: tensor<i32>):
      %34 = stablehlo.compare GT, %30, %32, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %35 = stablehlo.compare EQ, %30, %32, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %36 = stablehlo.compare NE, %30, %30, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %37 = stablehlo.compare NE, %32, %32, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %38 = stablehlo.not %37 : tensor<i1>
      %39 = stablehlo.and %36, %38 : tensor<i1>
      %40 = stablehlo.or %34, %39 : tensor<i1>
      %41 = stablehlo.and %36, %37 : tensor<i1>
      %42 = stablehlo.or %35, %41 : tensor<i1>
      %43 = stablehlo.compare LT, %31, %33, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %44 = stablehlo.and %42, %43 : tensor<i1>
      %45 = stablehlo.or %40, %44 : tensor<i1>
      %46 = stablehlo.select %45, %30, %32 : tensor<i1>, tensor<f32>
      %47 = stablehlo.select %45, %31, %33 : tensor<i1>, tensor<i32>
      stablehlo.return %46, %47 : tensor<f32>, tensor<i32>
    }) : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    return %3#1, %22, %29#1 : tensor<4xf32>, tensor<4xf32>, tensor<i32>
  }
  func.func private @twice(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    %1 = stablehlo.multiply %arg0, %arg0 : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
