package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// archiveOf makes a sandbox image of a program, under a umask.
func archiveOf(t *testing.T, program, umask string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "pause.tar")
	cmd := exec.Command("sh", "-c", `umask "$1" && exec "$2" "$3" "$4"`, "sh", umask, master+"pause.sh", program, out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// The archive is what `docker save` writes: containerd refuses a layer that has another hash than the configuration
// says.
func TestTheSandboxImageIsTheOneThatContainerdNames(t *testing.T) {
	t.Setenv("ARCH", "arm64")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	archive := archiveOf(t, program, "022")
	if read(t, archive) != read(t, archiveOf(t, program, "077")) {
		t.Error("another umask makes another archive")
	}
	entry := func(name string) []byte { return []byte(run(t, "tar", "-xOf", archive, name)) }

	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(entry("manifest.json"), &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("the manifest %+v: %v", manifest, err)
	}
	named := regexp.MustCompile(`sandbox_image = "(.*)"`).FindStringSubmatch(
		read(t, master+"files/master/etc/containerd/config.toml"))
	if got := manifest[0].RepoTags; named == nil || len(got) != 1 || got[0] != named[1] {
		t.Errorf("the image is %v, and containerd wants %v", got, named)
	}
	var config struct {
		Architecture string
		Config       struct{ Entrypoint []string }
		Rootfs       struct {
			Layers []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(entry(manifest[0].Config), &config); err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" { // containerd takes only its machine's from an archive
		t.Errorf("it is for %s", config.Architecture)
	}
	sum := sha256.Sum256(entry(manifest[0].Layers[0]))
	want := "sha256:" + hex.EncodeToString(sum[:])
	if got := config.Rootfs.Layers; len(got) != 1 || got[0] != want {
		t.Errorf("the layers are %v, want %s", got, want)
	}
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(layer, entry(manifest[0].Layers[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, "tar", "-xOf", layer, config.Config.Entrypoint[0][1:]); got != "a program" {
		t.Errorf("its entry point %v is %q", config.Config.Entrypoint, got)
	}
}
