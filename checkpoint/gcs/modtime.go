package gcs

import "time"

// ModTime implements checkpoint.ModTimer: when the object's content was made, by the clock of Cloud Storage.
func (f *FS) ModTime(name string) (time.Time, error) {
	a, err := f.attrs("looking at", name)
	if err != nil {
		return time.Time{}, err
	}
	return a.Created, nil
}
