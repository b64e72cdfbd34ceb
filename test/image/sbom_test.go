package image

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bill is what the test reads of an SPDX document.
type bill struct {
	Packages []struct {
		Name, VersionInfo string
		Checksums         []struct{ ChecksumValue string }
	}
}

// The SBOM beside the image has each package of the manifest, each program, and each module that Go says a program was
// built from.
func TestTheSBOMHasEachPackageAndEachModule(t *testing.T) {
	image := baked(t)
	var doc bill
	if err := json.Unmarshal([]byte(read(t, filepath.Join(image, "sbom.spdx.json"))), &doc); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, p := range doc.Packages {
		has[p.Name+" "+p.VersionInfo] = true
		for _, sum := range p.Checksums {
			has[p.Name+" sha256 "+sum.ChecksumValue] = true
		}
	}
	for _, line := range words(t, manifests[os.Getenv("ARCH")]) {
		if line[0] != "deb" {
			continue
		}
		there := has[line[2]+" "+line[3]] && has[line[2]+" sha256 "+line[5]]
		if line[1] == "image" && !there {
			t.Errorf("it lacks %v", line)
		}
	}
	tree := t.TempDir()
	run(t, "tar", "-C", tree, "-xf", filepath.Join(image, "root.tar"), "./usr/local/bin")
	programs, err := filepath.Glob(filepath.Join(tree, "usr/local/bin/*"))
	if err != nil || len(programs) < 8 {
		t.Fatalf("the image's programs are %v, %v", programs, err)
	}
	modules := 0
	for _, program := range programs {
		sum := strings.Fields(run(t, "sha256sum", program))[0]
		if name := filepath.Base(program); !has[name+" sha256 "+sum] {
			t.Errorf("it lacks the program %s with SHA-256 %s", name, sum)
		}
		for line := range strings.Lines(run(t, "go", "version", "-m", program)) {
			if f := strings.Fields(line); len(f) >= 3 && (f[0] == "dep" || f[0] == "=>") {
				modules++
				// What was replaced is named by what replaced it, on the next line.
				if !has[f[1]+" "+f[2]] && len(f) > 3 {
					t.Errorf("it lacks the module %s %s of %s", f[1], f[2], filepath.Base(program))
				}
			}
		}
	}
	if modules < 300 {
		t.Errorf("the programs have only %d modules", modules)
	}

	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(image, "provenance.json"))), &statement); err != nil {
		t.Fatal(err)
	}
	sums := read(t, filepath.Join(image, "SHA256SUMS"))
	for _, s := range statement.Subject {
		if !strings.Contains(sums, s.Digest["sha256"]+"  "+s.Name+"\n") {
			t.Errorf("the provenance is about another %s than the image's", s.Name)
		}
	}
	if len(statement.Subject) != 4 {
		t.Errorf("the provenance is about %+v", statement.Subject)
	}
}
