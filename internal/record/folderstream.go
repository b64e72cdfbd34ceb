package record

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/internal/durable"
)

func (f *folder) createStream(ctx context.Context, key string, fill func(io.Writer) error) error {
	if err := f.makeFolders(key); err != nil {
		return err
	}
	err := durable.CreateFileFrom(f.where(key), fileMode, func(w io.Writer) error {
		return errors.Join(fill(w), ctx.Err())
	})
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	return err
}

func (f *folder) readStream(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := os.Open(f.where(key))
	if notThere(err) {
		return nil, errors.Join(errAbsent, f.checkRoot())
	}
	return file, err
}

func (f *folder) deleteSnapshot(_ context.Context, key string) error {
	if err := onlySnapshots(key); err != nil {
		return err
	}
	err := os.Remove(f.where(key))
	if errors.Is(err, fs.ErrNotExist) {
		return f.checkRoot()
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(f.where(key)))
}

func (f *folder) sweep(_ context.Context, before time.Time) error {
	epochs, err := os.ReadDir(f.where(snapshotsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return f.checkRoot()
	}
	if err != nil {
		return err
	}
	for _, e := range epochs {
		if !e.IsDir() {
			continue
		}
		if err := durable.CleanTempBefore(filepath.Join(f.where(snapshotsFolder), e.Name()), before); err != nil {
			return err
		}
	}
	return nil
}
