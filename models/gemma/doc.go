// Package gemma is the mathematics of the Gemma 3 and Gemma 4 text models, as Hugging Face transformers computes it.
//
// config.go reads config.json; layers.go finds the repeated groups of layers that a scan can run; params.go declares
// the tensors, sharding.go how each is split, names.go what a checkpoint calls them, init.go their random values;
// model.go and layer.go compute. Shapes in comments: B batch, T sequence, H hidden size, N query heads, K key/value
// heads, D head dimension, V vocabulary, L layers, P per-layer embedding size.
package gemma
