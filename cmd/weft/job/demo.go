package job

import (
	"weft/data"
	"weft/data/demo"
	"weft/data/tokenizer"
	"weft/models"
)

// demoModelFiles are the embedded model's.
func demoModelFiles() (*modelFiles, error) {
	m := &modelFiles{name: "the embedded demo", config: demo.ConfigJSON(), files: map[string][]byte{}}
	m.files[configName] = m.config
	m.files[tokenizerName] = demo.TokenizerJSON()
	var err error
	m.arch, err = models.Open(m.config)
	return m, err
}

func openDemoDataset(tok *tokenizer.Tokenizer, o data.Options) (*data.Dataset, error) {
	return data.OpenBytes("of the demo", demo.Records(), tok, o)
}

// demoNext is what a user can do after the demo.
const demoNext = `Next, with a model of yours:  weft finetune --model-id DIR --dataset FILE.jsonl --num-epochs 3 --storage-path OUT
See every flag:               weft finetune --help`
