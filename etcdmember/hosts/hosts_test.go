package hosts

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

var (
	pa = replica.Place{Zone: "us-central1-a", Name: "m-a"}
	pb = replica.Place{Zone: "us-central1-b", Name: "m-b"}
	pc = replica.Place{Zone: "us-central1-c", Name: "m-c"}
)

func addresses(of ...string) (out []netip.Addr) {
	for _, a := range of {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func TestTheHostsBlockLeavesTheRestAlone(t *testing.T) {
	peers := []replica.Peer{{Place: pb, Addresses: addresses("10.0.0.2", "10.0.1.2")},
		{Place: pa, Addresses: addresses("10.0.0.1")}, {Place: pc}}
	block := blockBegin + "\n10.0.0.1 " + pa.DNSName("demo") + "\n10.0.0.2 " + pb.DNSName("demo") + "\n" + blockEnd +
		"\n"
	const local = "127.0.0.1 localhost\n"
	for name, c := range map[string]struct{ before, want string }{
		"an empty file":         {"", block},
		"a file of others":      {local, local + block},
		"no newline at the end": {"127.0.0.1 localhost", local + block},
		"a block of other addresses": {local + blockBegin + "\n10.9.9.9 " + pa.DNSName("demo") + "\n" + blockEnd +
			"\n# after\n", local + "# after\n" + block},
		"a block that lost its end": {blockBegin + "\n10.9.9.9 " + pa.DNSName("demo") + "\n" + local, local + block},
		"a master that the record lost stays, and a stranger's line goes": {blockBegin + "\n10.0.0.3 " +
			pc.DNSName("demo") + "\n10.0.0.4 " + pa.DNSName("other") + "\n" + blockEnd + "\n",
			strings.Replace(block, blockEnd, "10.0.0.3 "+pc.DNSName("demo")+"\n"+blockEnd, 1)},
		"a block that lost its begin": {local + blockEnd + "\n", local + block},
		"as it should be":             {local + block, local + block},
		"empty lines are somebody's":  {"\n" + local + "\n", "\n" + local + "\n" + block},
	} {
		if got := with(c.before, "demo", peers); got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, c.want)
		}
	}
}

// A VM is given the address of one that was deleted: the older name leads nowhere then, also where only the block knows
// it.
func TestTwoNamesNeverHaveOneAddress(t *testing.T) {
	a, b, c := pa.DNSName("demo"), pb.DNSName("demo"), pc.DNSName("demo")
	peers := []replica.Peer{{Place: pb, Addresses: addresses("10.0.0.1")},
		{Place: pa, Addresses: addresses("10.0.0.1")}}
	before := blockBegin + "\n10.0.0.1 " + c + "\n" + blockEnd + "\n"
	want := blockBegin + "\n192.0.2.1 " + a + "\n10.0.0.1 " + b + "\n192.0.2.3 " + c + "\n" + blockEnd + "\n"
	if got := with(before, "demo", peers); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func TestTheHostsFileIsWrittenOnlyWhenItChanges(t *testing.T) {
	path := t.TempDir() + "/hosts"
	peers := []replica.Peer{{Place: pa, Addresses: addresses("10.0.0.1")}}
	for _, want := range []bool{true, false} {
		if changed, err := Write(path, "demo", peers); err != nil || changed != want {
			t.Errorf("changed %t, %v", changed, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: every program on the VM reads it", info.Mode(), err)
	}
}
