package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAProcessRunsAsItsAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it starts processes as other users")
	}
	inGroups(t, func(t *testing.T, cfg Config) {
		s := begin(t, cfg)
		for name, c := range map[string]struct {
			account *Account
			want    []string
		}{
			"as-the-supervisor": {nil, []string{"Uid: 0 0 0 0"}},
			"as-another": {&Account{UID: 64951, GID: 64952}, []string{"Uid: 64951 64951 64951 64951",
				"Gid: 64952 64952 64952 64952", "Groups: ", "CapEff: 0000000000000000", "CapAmb: 0000000000000000"}},
			"with-a-capability": {&Account{UID: 64951, GID: 64952,
				Capabilities: []uintptr{unix.CAP_NET_BIND_SERVICE}}, []string{"Uid: 64951 64951 64951 64951",
				"CapEff: 0000000000000400", "CapAmb: 0000000000000400"}},
		} {
			start(t, s, Spec{Name: name, Path: "/bin/sleep", Args: []string{"1000"}, RunAs: c.account, OOMScore: 100,
				Nice: 1})
			status := ""
			eventually(t, "it has executed its program", func() bool {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pidOf(t, s, name)))
				status = strings.ReplaceAll(string(b), "\t", " ")
				status = strings.ReplaceAll(status, " \n", "\n")
				return strings.HasPrefix(status, "Name: sleep\n")
			})
			for _, line := range c.want {
				if !strings.Contains(status, line+"\n") {
					t.Errorf("%s: its status has no line %q:\n%s", name, line, status)
				}
			}
			restart(t, s, name) // signals reach it, and a second run is as the first
		}
	})
}

// restart wants a process to be started again by the supervisor.
func restart(t *testing.T, s *Supervisor, name string) {
	t.Helper()
	before := pidOf(t, s, name)
	if err := s.Restart(t.Context(), name, "for the test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs again", func() bool { pid := pidOf(t, s, name); return pid != 0 && pid != before })
}
