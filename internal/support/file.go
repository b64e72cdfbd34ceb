package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// longestPart is the most that one part of the file has; of a log that is its end.
	longestPart = 512 << 10
	// longestFile bounds all parts together, before they are compressed. The file is made in memory.
	longestFile = 8 << 20
)

// Missing is a part that could not be had.
type Missing struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// Manifest is what the file says of itself. Its JSON keys are stable.
type Manifest struct {
	// Made is when, by the clock of the machine that On names: a master's place, or elsewhere.
	Made time.Time `json:"made"`
	On   string    `json:"on"`
	By   string    `json:"by"`
	// Parts are the files, Missing those that could not be had.
	Parts   []string  `json:"parts"`
	Missing []Missing `json:"missing"`
	Note    string    `json:"note"`
}

const note = "What went in is listed in quorate's source, internal/support. A … stands where something was left out."

// File gathers parts. Each passes its filter.
type File struct {
	*Filter
	manifest Manifest
	parts    map[string][]byte
	size     int
}

// NewFile begins a file.
func NewFile(f *Filter, on, by string, now time.Time) *File {
	return &File{Filter: f, parts: map[string][]byte{}, manifest: Manifest{Made: now.UTC().Truncate(time.Second),
		On: on, By: by, Parts: []string{}, Missing: []Missing{}, Note: note}}
}

// Document takes what is listed of a value.
func (f *File) Document(part string, v any) {
	taken, err := f.Taken(v)
	if err == nil {
		var b []byte
		if b, err = json.MarshalIndent(taken, "", "  "); err == nil {
			f.add(part, append(b, '\n'))
			return
		}
	}
	f.Lacks(part, err)
}

// Log takes the end of a log.
func (f *File) Log(part string, r io.Reader) {
	b, cut, err := ending(r)
	if err != nil {
		f.Lacks(part, err)
		return
	}
	out := f.Text(string(b))
	if cut {
		out = "… (what was before is left out)\n" + out
	}
	f.add(part, []byte(out))
}

// Lacks says why a part is not there.
func (f *File) Lacks(part string, err error) {
	f.manifest.Missing = append(f.manifest.Missing, Missing{part, f.Text(err.Error())})
}

func (f *File) add(part string, data []byte) {
	switch {
	case len(data) > longestPart:
		f.Lacks(part, fmt.Errorf("it has %d bytes, and at most %d are taken", len(data), longestPart))
	case f.size+len(data) > longestFile:
		f.Lacks(part, errors.New("the file has no more room"))
	default:
		f.parts[part], f.size = data, f.size+len(data)
		f.manifest.Parts = append(f.manifest.Parts, part)
	}
}

// Manifest is what the file says of itself.
func (f *File) Manifest() Manifest { return f.manifest }

// Pack is the file: a tar.gz with one folder.
func (f *File) Pack(folder string) ([]byte, error) {
	manifest, err := json.MarshalIndent(f.manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	write := func(part string, data []byte) error {
		header := tar.Header{Name: folder + "/" + part, Mode: 0o600, Size: int64(len(data)), ModTime: f.manifest.Made}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	err = write("manifest.json", append(manifest, '\n'))
	for _, part := range f.manifest.Parts {
		err = errors.Join(err, write(part, f.parts[part]))
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("pack the file: %w", err)
	}
	return out.Bytes(), nil
}

// ending reads all, and keeps whole lines at the end that fit. What may grow under a filter is left a quarter of room.
func ending(r io.Reader) (kept []byte, cut bool, err error) {
	const room = longestPart * 3 / 4
	buf := make([]byte, 64<<10)
	for {
		n, readErr := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if over := len(kept) - room; over > room {
			kept, cut = append([]byte{}, kept[over:]...), true
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return nil, false, readErr
		}
	}
	if over := len(kept) - room; over > 0 {
		kept, cut = kept[over:], true
	}
	if _, after, found := bytes.Cut(kept, []byte("\n")); cut && found {
		kept = after
	}
	return kept, cut, nil
}
