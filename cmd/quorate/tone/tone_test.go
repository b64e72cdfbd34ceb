package tone

import (
	"testing"

	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/supervisor"
)

func TestGreenIsWhatIsWellAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want terminal.Tone
	}{
		{"a cluster that is well", Of(health.Well), terminal.Good},
		{"a degraded one", Of(health.Degraded), terminal.Warn},
		{"one of which nothing is known", Of(health.Unknown), terminal.Warn},
		{"one that does not serve", Of(health.NotServing), terminal.Bad},
		{"a finding by which nobody is served", OfLevel(health.Broken), terminal.Bad},
		{"a warning", OfLevel(health.Warn), terminal.Warn},
		{"a note", OfLevel(health.Note), terminal.NoTone},
		{"a wait that a later version has added", OfWait("of-tomorrow"), terminal.Warn},
		{"a wait that passes by itself", OfWait(health.Paused), terminal.NoTone},
		{"a ready replica", OfReplica(health.ReplicaReady), terminal.Good},
		{"one that is not well", OfReplica(health.ReplicaUnwell), terminal.Warn},
		{"one that boots", OfReplica(health.ReplicaBoots), terminal.Warn},
		{"one that is not heard", OfReplica(health.ReplicaUnheard), terminal.Bad},
		{"one that is cut off", OfReplica(health.ReplicaCutOff), terminal.Bad},
		{"a ready component", OfComponent(supervisor.Ready), terminal.Good},
		{"one that starts", OfComponent(supervisor.Starting), terminal.Warn},
		{"one that ends again and again", OfComponent(supervisor.Backoff), terminal.Bad},
		{"a listed replica that is ready", OfListed(fleet.ListedReplica{Role: fleet.Voter, Ready: true}), terminal.Good},
		{"one that is not", OfListed(fleet.ListedReplica{Role: fleet.Learner}), terminal.Warn},
		{"one of which nothing is known", OfListed(fleet.ListedReplica{Role: fleet.RoleUnknown}), terminal.NoTone},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}
