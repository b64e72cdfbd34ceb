package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const anImage = `{"commit": "0123abc", "manifest": "sha256:ff", "pinned": "2026-11-22T21:46:11Z"}`

// runVersion runs the command on a machine whose image says text; nothing where it is empty.
func runVersion(t *testing.T, text string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.json")
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	cmd := newVersion(file)
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestAMachineSaysWhatImageItWasMadeFrom(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       []string
		want, fail string
	}{
		{"asked", anImage, []string{"--image"},
			"image: commit 0123abc, manifest sha256:ff, packages of 2026-11-22T21:46:11Z", ""},
		{"asked, as JSON", anImage, []string{"--image", "-o", "json"}, `"commit": "0123abc"`, ""},
		{"beside the versions", anImage, []string{"-o", "json"}, `"manifest": "sha256:ff"`, ""},
		{"no image", "", []string{"--image"}, "", "was not made from an image"},
		{"no image, versions as JSON", "", []string{"-o", "json"}, `"etcd"`, ""},
		{"a damaged file", "{", []string{"--image"}, "", "image.json: unexpected end of JSON input"},
		{"a damaged file, versions as JSON", "{", []string{"-o", "json"}, "",
			"image.json: unexpected end of JSON input"},
		{"a damaged file does not matter to the versions", "{", nil, "quorate ", ""},
		{"a file that says too little", `{"commit": "0123abc"}`, []string{"--image"}, "",
			"want commit, manifest and pinned"},
		{"what a site has added", strings.Replace(anImage, "{", `{"extra": "sha256:ee", `, 1), []string{"--image"},
			"image: with what a site has added, sha256:ee", ""},
		{"an image of a newer version says more", strings.Replace(anImage, "{", `{"kernel": "6.12", `, 1),
			[]string{"-o", "json"}, `"manifest": "sha256:ff"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := runVersion(t, c.text, c.args...)
			if !strings.Contains(out, c.want) || (c.want == "") != (out == "") {
				t.Errorf("it prints %q, want %q", out, c.want)
			}
			if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("the error is %v, want %q", err, c.fail)
			}
		})
	}
	if out, err := runVersion(t, "", "-o", "json"); err != nil || strings.Contains(out, "image") {
		t.Errorf("without an image: %v: %s", err, out)
	}
}
