package etcdmember

import (
	"log/slog"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// An agent that is started again in the same boot knows that its replica was superseded, whether the record can be read
// or not. The next boot asks the record.
func TestThatAReplicaWasSupersededIsKnownForTheRestOfTheBoot(t *testing.T) {
	dir := t.TempDir()
	in := func(boot string) Config {
		return Config{Log: slog.New(slog.DiscardHandler), RunDir: dir, Me: replica.Identity{BootID: boot}}
	}
	n := readSuperseded(in("boot1"))
	if n.yes {
		t.Fatal("nobody has said so")
	}
	if n.note(); !n.yes || !readSuperseded(in("boot1")).yes {
		t.Error("it is forgotten by the next agent")
	}
	if readSuperseded(in("boot2")).yes {
		t.Error("it is known in the next boot")
	}
}
