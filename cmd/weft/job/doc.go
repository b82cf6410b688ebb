// Package job is the finetune job as a library: Run takes a Config from real records to checkpoints and metrics.
//
// A run goes through the parts of weft in this order, each in a file of its own: validation (config), devices, data,
// model, checkpointing and resumption (save, identity), the training loop of engine/trainer, and the reports (report,
// metrics). What is wrong with the input is found before anything is trained and returned as an InputError.
package job
