package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/etcdmember/restoredir"
)

func TestADirectoryIsMadeByAProcessOfItsOwn(t *testing.T) {
	for script, want := range map[string]string{
		`[ "$1 $2" = "make-directory --config" ] && grep -q '"token": "t"' "$3" && mkdir "${3%/*}/new"`: "",

		"echo first >&2; echo 'quorate: it is broken' >&2; exit 1": "make the directory of a restore: it is broken",
	} {
		dir := t.TempDir()
		a := &Agent{cfg: Config{Self: program(t, script), Env: os.Environ(), Log: slog.New(slog.DiscardHandler)}}
		err := a.makeDirectory(t.Context(), restoredir.Job{Snapshot: "s", Scratch: dir,
			Out: filepath.Join(dir, "new"), Name: "m", DNSName: "d", Token: "t"})
		if want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			continue
		}
		if _, statErr := os.Stat(filepath.Join(dir, "new")); err != nil || statErr != nil {
			t.Error(err, statErr)
		}
	}
}
