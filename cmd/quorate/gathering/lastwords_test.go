package gathering

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/support"
)

const words = `=== quorate: boot one instance 100 at 2026-11-24T10:00:00Z
level=INFO msg="of the former boot"
=== quorate: boot two instance 101 at 2026-11-24T11:00:00Z
level=INFO msg="of the running boot"
`

// gathered is a report of a master without a journal, whose agent is of a boot.
func gathered(t *testing.T, boot, words string, logs map[string]string) (parts map[string]string,
	missing map[string]string) {
	t.Helper()
	data, folder := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if words != "" {
		write(filepath.Join(agent.LastWordsDir(data), "agent.log"), words)
	}
	for name, text := range logs {
		write(filepath.Join(folder, name), text)
	}
	g := New(Options{LogDir: folder, RunDir: t.TempDir()}, time.Now())
	g.cluster = &replica.Cluster{Etcd: replica.Etcd{DataDir: data}}
	g.file = support.NewFile(support.NewFilter(nil, nil), "a master", "devel", time.Now())
	if g.silent = errors.New("no agent"); boot != "" {
		g.self = &replica.Identity{BootID: boot}
	}
	g.addMaster(t.Context())
	missing = map[string]string{}
	for _, m := range g.file.Manifest().Missing {
		missing[m.Part] = m.Why
	}
	return unpacked(t, g.file), missing
}

// unpacked is what a report has.
func unpacked(t *testing.T, f *support.File) map[string]string {
	t.Helper()
	packed, err := f.Pack("x")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[strings.TrimPrefix(h.Name, "x/")] = string(text)
	}
}

func TestWithoutAJournalTheAgentsLogComesFromTheDisk(t *testing.T) {
	etcd := map[string]string{"etcd.log": "of etcd\n"}
	file := map[string]string{"agent.log": "in a file\n"}
	for name, c := range map[string]struct {
		boot, words string
		logs        map[string]string
		want, why   string // what the agent's log has, or why it is missing
	}{
		"the running boot's words are on the disk": {"two", words, etcd, "of the running boot", ""},
		"the disk has words of another boot":       {"three", words, etcd, "", "has not written its log"},
		"the disk has none":                        {"two", "", etcd, "", "has not written its log"},
		"nobody knows which boot this is":          {"", words, etcd, "", "lastwords"},
		"somebody writes it to a file":             {"two", words, file, "in a file", ""},
	} {
		parts, missing := gathered(t, c.boot, c.words, c.logs)
		text, why := parts[agentLog], missing[agentLog]
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || strings.Contains(text, "former") {
			t.Errorf("%s: the log is %q; want %q", name, text, c.want)
		}
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: missing because %q; want %q", name, why, c.why)
		}
		if c.boot == "two" && c.words != "" && !strings.Contains(parts["lastwords/agent.log"], "former") {
			t.Errorf("%s: the former boot's words are %q", name, parts["lastwords/agent.log"])
		}
	}
}
