package hosts

import (
	"os"
	"path/filepath"
	"testing"
)

func TestANameIsFoundRightAfterItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	r := Resolver(path)
	const name = "master-b.us-central1-b.demo.quorate.internal"
	for _, step := range []struct{ hosts, want string }{
		{"127.0.0.1 localhost\n", ""},
		{"127.0.0.1 localhost\n10.240.0.12 " + name + " # zone b\n", "10.240.0.12"},
		{"10.240.0.99 " + name + "\n", "10.240.0.99"},
	} {
		if err := os.WriteFile(path, []byte(step.hosts), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := r.LookupHost(t.Context(), name)
		switch {
		case step.want == "" && err == nil:
			t.Fatalf("found %v in %q", got, step.hosts)
		case step.want != "" && (err != nil || len(got) != 1 || got[0] != step.want):
			t.Fatalf("found %v, %v in %q, want %s", got, err, step.hosts, step.want)
		}
	}
}
