// Package fault has the errors of quorate's commands that have an exit code of their own: a mistake on the command
// line, a Cluster document, a record or a file that cannot be used, and the want of root. The codes themselves are in
// cmd/quorate/errors.go.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/record"
)

// ConfigError is a Cluster document that cannot be used.
type ConfigError struct{ err error }

func (e *ConfigError) Error() string { return e.err.Error() }
func (e *ConfigError) Unwrap() error { return e.err }

// Config is an error about the Cluster document.
func Config(format string, args ...any) error { return &ConfigError{fmt.Errorf(format, args...)} }

// Record is an error of a record that answers, but not with what is needed.
func Record(format string, args ...any) error {
	return record.AtFault(fmt.Errorf(format, args...))
}

// FileError is a file or folder, other than the Cluster document, that a person named and that cannot be used.
type FileError struct{ err error }

func (e *FileError) Error() string { return e.err.Error() }
func (e *FileError) Unwrap() error { return e.err }

// AtFile says that an error is about a file that a person named; nil stays nil.
func AtFile(err error) error {
	if err == nil {
		return nil
	}
	return &FileError{err}
}

// File is an error about a file that a person named.
func File(format string, args ...any) error { return &FileError{fmt.Errorf(format, args...)} }

// UsageError is a mistake on the command line.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// Usage is an error about the command line.
func Usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// NotRootError says that a command needs root.
type NotRootError struct{ what string }

func (e *NotRootError) Error() string { return e.what + " needs root: run it with sudo" }

// NotRoot is the error of a command that was refused for want of root.
func NotRoot(what string) error { return &NotRootError{what} }

// RequireRoot refuses a command to whoever is not root.
func RequireRoot(what string) error {
	if os.Geteuid() != 0 {
		return NotRoot(what)
	}
	return nil
}

// CheckTarget says why a file cannot be put where a person wants it. Asked before anything else is: the writing itself
// would name the temporary file that it begins with.
func CheckTarget(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return File("write %s: it is a folder; name a file in it", path)
	}
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return File("write %s: there is no folder %s", path, dir)
	case err == nil && !info.IsDir():
		return File("write %s: %s is not a folder", path, dir)
	}
	return nil // whatever else there is, the writing says
}
