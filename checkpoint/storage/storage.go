// Package storage opens the place that a path or URL names: a local path, or
// gs://bucket/prefix on Cloud Storage.
package storage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"weft/checkpoint"
)

// Scheme begins the URL of an object or prefix on Cloud Storage.
const Scheme = "gs://"

// ErrURL is wrapped by the error of a URL that cannot be opened.
var ErrURL = errors.New("not a local path and not gs://bucket/prefix")

var anyScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// IsRemote tells a URL of Cloud Storage from a local path.
func IsRemote(url string) bool { return strings.HasPrefix(url, Scheme) }

// Open gives the FS that url belongs to, and the name by which that FS knows
// it: the absolute path on a disk, "bucket/prefix" on Cloud Storage. Nothing is
// read, so a bucket that does not exist is met only on first use. No Google
// credentials is gcs.ErrCredentials, a URL of another kind ErrURL. All of one
// process share the connections to Cloud Storage.
func Open(ctx context.Context, url string) (fsys checkpoint.FS, name string, err error) {
	switch {
	case IsRemote(url):
		name, err := split(url)
		if err != nil {
			return nil, "", err
		}
		f, err := sharedGCS(ctx)
		if err != nil {
			return nil, "", fmt.Errorf("opening %s: %w", url, err)
		}
		return f, name, nil
	case anyScheme.MatchString(url), almostURL.MatchString(url):
		return nil, "", fmt.Errorf("opening %q: %w: give one of these", url, ErrURL)
	}
	name, err = filepath.Abs(url)
	if err != nil {
		return nil, "", fmt.Errorf("opening %q: %w", url, err)
	}
	return hooked(checkpoint.OS{}), name, nil
}

// split takes "bucket/prefix" out of a URL.
func split(url string) (string, error) {
	name := strings.TrimPrefix(url, Scheme)
	if bucket, _, _ := strings.Cut(name, "/"); bucket == "" || bucket == "." || bucket == ".." {
		return "", fmt.Errorf("opening %q: %w: it has no bucket", url, ErrURL)
	}
	return path.Clean(name), nil
}

// Join adds elements to a local path or URL.
func Join(url string, elem ...string) string {
	if IsRemote(url) {
		return Scheme + path.Join(append([]string{strings.TrimPrefix(url, Scheme)}, elem...)...)
	}
	return filepath.Join(append([]string{url}, elem...)...)
}

// URL is the way back from a name in fsys, for messages and for Open.
func URL(fsys checkpoint.FS, name string) string {
	if _, local := fsys.(checkpoint.OS); local {
		return name
	}
	if u, ok := fsys.(interface{ URL(name string) string }); ok {
		return u.URL(name)
	}
	return name
}
