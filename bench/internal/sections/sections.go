// Package sections writes generated sections of a Markdown file.
package sections

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// Marks are the lines between which a section lies.
type Marks struct{ Begin, End string }

// Write replaces the section of a file by text, which begins and ends with the marks, or adds it at the file's end.
func Write(path string, m Marks, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	content, err := Replace(string(old), m, text)
	if err != nil {
		return fmt.Errorf("--out %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// Replace is Write on a file's content.
func Replace(old string, m Marks, text string) (string, error) {
	before, rest, found := strings.Cut(old, m.Begin)
	if !found {
		if old != "" {
			old = strings.TrimRight(old, "\n") + "\n\n"
		}
		return old + text, nil
	}
	_, after, closed := strings.Cut(rest, m.End+"\n")
	if !closed {
		return "", fmt.Errorf("it has %q without %q: put that line back where the section ends", m.Begin, m.End)
	}
	return before + text + after, nil
}

// Revision is that of the repository in the current folder, for the text of a section.
func Revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
