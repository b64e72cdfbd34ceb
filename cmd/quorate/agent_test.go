package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/master"
)

// The agent needs the very disk that the image mounts: each of the image's files names it for itself.
func TestTheImageTellsTheAgentWhichDiskItMounts(t *testing.T) {
	t.Parallel()
	const units = "../../images/master/files/master/usr/lib/systemd/system/"
	value := func(file, line string) string {
		text, err := os.ReadFile(units + file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^`+line+`=(.+)$`).FindAllSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%s has %d lines %s=, want one", file, len(found), line)
		}
		return string(found[0][1])
	}
	device := value("quorate.service.d/image.conf", "Environment="+master.DiskVariable)
	if got, want := value(master.DiskUnit, "What"), "/dev/disk/by-id/google-"+device; got != want {
		t.Errorf("the image mounts %s, and its agent waits for %s", got, want)
	}
	if got := value(master.DiskUnit, "Where"); got != master.DiskMount {
		t.Errorf("the image mounts it at %s, and its agent expects it at %s", got, master.DiskMount)
	}
}
