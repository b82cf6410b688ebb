package storage

import (
	"context"
	"os"
	"sync"

	"weft/checkpoint/gcs"
)

// clients are the connections to Cloud Storage of this process, by what the
// environment says of it: every flag that names a gs:// URL shares one.
var clients struct {
	sync.Mutex
	open map[[2]string]*gcs.FS
}

func sharedGCS(ctx context.Context) (*gcs.FS, error) {
	key := [2]string{os.Getenv("STORAGE_EMULATOR_HOST"), os.Getenv(gcs.LeaseEnv)}
	clients.Lock()
	defer clients.Unlock()
	if f, ok := clients.open[key]; ok {
		return f, nil
	}
	f, err := gcs.New(ctx, gcs.Options{})
	if err != nil {
		return nil, err
	}
	if clients.open == nil {
		clients.open = map[[2]string]*gcs.FS{}
	}
	clients.open[key] = f
	return f, nil
}
