package controlplane

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// TestPodRangesAreThoseThatTheControllerManagerCuts has the borders of each rule; TestDocumentsThatValidateStart
// asks the real one.
func TestPodRangesAreThoseThatTheControllerManagerCuts(t *testing.T) {
	const ok = ""
	for _, tc := range []struct {
		pods, args string
		why        string // a part of what is said; empty: it is taken
	}{
		{"10.244.0.0/16", "", ok},
		{"10.0.0.0/8", "", ok},
		{"8.0.0.0/7", "", "/8 to /24"},
		{"10.244.0.0/24", "", ok},
		{"10.244.0.0/25", "", "/8 to /24, of which each node gets a /24"},
		{"10.244.0.0/32", "", "/8 to /24"},
		{"fd00:10::/48", "", ok},
		{"fd00:10::/47", "", "/48 to /64, of which each node gets a /64"},
		{"fd00:10::/64", "", ok},
		{"fd00:10::/65", "", "/48 to /64"},
		{"10.244.0.0/26", "--node-cidr-mask-size=26", ok},
		{"10.244.0.0/27", "--node-cidr-mask-size=26", "/8 to /26"},
		{"10.244.0.0/26", "--node_cidr_mask_size_ipv4=26", ok},
		{"10.244.0.0/24", "--node-cidr-mask-size=26 --node-cidr-mask-size=23", "/8 to /23"},
		{"fd00:10::/96", "--node-cidr-mask-size=112", ok},
		{"fd00:10::/95", "--node-cidr-mask-size=112", "/96 to /112"},
		{"fd00:10::/32", "--node-cidr-mask-size-ipv6=48", ok},
		{"2000::/3", "--node-cidr-mask-size=10", ok},
		{"8000::/1", "--node-cidr-mask-size=1", ok},
		{"2000::/3", "--node-cidr-mask-size=2", "/1 to /2"},
		{"10.244.0.0/16", "--node-cidr-mask-size-ipv6=64", "is one range"},
		{"fd00:10::/48", "--node-cidr-mask-size-ipv4=24", "is one range"},
		{"10.244.0.0/16", "--node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=24", "is one range"},
		{"10.244.0.0/16", "--node-cidr-mask-size=33", "--node-cidr-mask-size=32"},
		{"10.244.0.0/16", "--node-cidr-mask-size=32", ok},
		{"10.244.0.0/16", "--node-cidr-mask-size=0", "--node-cidr-mask-size=1"},
		{"10.244.0.0/16", "--node-cidr-mask-size=", "--node-cidr-mask-size=1"},
		{"10.244.0.0/16", "--node-cidr-mask-size", "--node-cidr-mask-size=1"},
		{"10.244.0.0/25", "--allocate-node-cidrs=false", ok},
		{"10.244.0.0/25", "--allocate-node-cidrs", "/8 to /24"},
		{"10.244.0.0/25", "--allocate-node-cidrs=false --allocate-node-cidrs=true", "/8 to /24"},
		{"10.244.0.0/25", "--controllers=*,-node-ipam-controller", ok},
		{"10.244.0.0/25", "--controllers=* --controllers=-nodeipam", ok},
		{"10.244.0.0/25", "--controllers=*,-bootstrap-signer-controller", "/8 to /24"},
		{"10.244.0.0/25", "--controllers=garbage-collector-controller", ok},
		{"10.244.0.0/25", "--controllers=node-ipam-controller,-node-ipam-controller", "/8 to /24"},
		{"no range", "", ok}, // Cluster.Validate judges it
	} {
		c := &replica.Cluster{Network: replica.Network{PodCIDR: tc.pods}, Components: map[string]replica.Component{
			replica.ControllerManager: {Enabled: new(true), ExtraArgs: strings.Fields(tc.args)}}}
		said := fmt.Sprint(Validate(c))
		if tc.why == ok && said != "<nil>" || !strings.Contains(said, tc.why) {
			t.Errorf("%s %s: %s, want %q", tc.pods, tc.args, said, tc.why)
		}
		c.Components[replica.ControllerManager] = replica.Component{Enabled: new(false),
			ExtraArgs: strings.Fields(tc.args)}
		if err := Validate(c); err != nil {
			t.Errorf("%s %s without a controller-manager: %v", tc.pods, tc.args, err)
		}
	}
}
