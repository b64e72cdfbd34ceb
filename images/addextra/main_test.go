package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderIsLaidOut(t *testing.T) {
	t.Parallel()
	folder, output := t.TempDir(), t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("units/site.service", "[Service]\nExecStart=/opt/run\n[Install]\nWantedBy=multi-user.target\n", 0o600)
	write("files/opt/run", "#!/bin/sh\n", 0o700)
	if err := layOut("../master/manifest", folder, output); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"enable": "site.service", "root/opt/run": "#!/bin/sh\n"} {
		got, err := os.ReadFile(filepath.Join(output, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if hash, err := os.ReadFile(filepath.Join(output, "hash")); err != nil || len(hash) != 64 {
		t.Errorf("the hash is %q, %v", hash, err)
	}
	write("units/kubelet.service", "[Service]\n", 0o600)
	other := t.TempDir()
	if err := layOut("../master/manifest", folder, other); err == nil || !strings.Contains(err.Error(),
		folder+"/units/kubelet.service: found a unit of the image's own") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("a bad folder is laid out in part: %v, %v", left, err)
	}
}
