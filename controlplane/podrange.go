package controlplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

const (
	// widestPodRange is for IPv4. A wider range would cover addresses that almost any network uses.
	widestPodRange = 8
	// nodeBits is how many more bits of IPv6 a node's range can have than the range of all pods:
	// kube-controller-manager keeps a bit for each node that there could be.
	nodeBits = 16
)

// podRangeFaults names a range of pods that kube-controller-manager would not divide among the nodes. On each replica
// it would end whenever it leads. Only its flags choose the size of a node's range.
func podRangeFaults(c *replica.Cluster) replica.Faults {
	pods, err := netip.ParsePrefix(c.Network.PodCIDR)
	args := c.Components[replica.ControllerManager].ExtraArgs
	if err != nil || !enabled(c, replica.ControllerManager) || !cutsPodRange(args) {
		return nil // the range is named by Cluster.Validate where it is wrong in itself
	}
	node, fault := nodeMask(args, pods)
	if fault != nil {
		return replica.Faults{*fault}
	}
	widest := widestPodRange
	if pods.Addr().Is6() {
		widest = node - nodeBits
	}
	if pods.Bits() >= widest && pods.Bits() <= node {
		return nil
	}
	return replica.Faults{{Field: "network.podCIDR", Found: fmt.Sprintf("%q", c.Network.PodCIDR),
		Allowed: fmt.Sprintf("/%d to /%d, of which each node gets a /%[2]d; "+
			"kube-controller-manager's flag --%s chooses another size", max(widest, 1), node, maskFlag)}}
}

// cutsPodRange reports whether kube-controller-manager gives the nodes their ranges.
func cutsPodRange(args []string) bool {
	if allocates := valuesOf(args, "allocate-node-cidrs"); len(allocates) > 0 {
		if on, err := strconv.ParseBool(allocates[len(allocates)-1]); err == nil && !on {
			return false
		}
	}
	var controllers []string
	for _, list := range valuesOf(args, "controllers") {
		controllers = append(controllers, strings.Split(list, ",")...)
	}
	// The first entry that names a controller decides.
	for _, entry := range controllers {
		switch entry {
		case nodeIPAM, "nodeipam":
			return true
		case "-" + nodeIPAM, "-nodeipam":
			return false
		}
	}
	return len(controllers) == 0 || slices.Contains(controllers, "*")
}

const (
	nodeIPAM = "node-ipam-controller"
	maskFlag = "node-cidr-mask-size"
)

// nodeMask is the size of a node's range. The general flag sets it, or the flag of the range's own family: never both,
// and never the other family's flag.
func nodeMask(args []string, pods netip.Prefix) (int, *replica.Fault) {
	size, family, other := 24, "-ipv4", "-ipv6"
	if pods.Addr().Is6() {
		size, family, other = 64, other, family
	}
	bits, general := pods.Addr().BitLen(), false
	for _, suffix := range []string{"", family, other} {
		values := valuesOf(args, maskFlag+suffix)
		if len(values) == 0 {
			continue
		}
		value := values[len(values)-1]
		n, err := strconv.Atoi(value)
		if outside := err != nil || n < 1 || n > bits; outside || suffix == other || suffix == family && general {
			return 0, &replica.Fault{Field: "components." + replica.ControllerManager + ".extraArgs",
				Found: fmt.Sprintf("%q", "--"+maskFlag+suffix+"="+value),
				Allowed: fmt.Sprintf("--%s=1 to --%[1]s=%d, once: the range of pods, %s, is one range",
					maskFlag, bits, pods)}
		}
		general, size = suffix == "", n
	}
	return size, nil
}
