package setup

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/record"
)

// Where the load balancers' health checks come from.
var (
	externalProbes = []string{"35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"}
	internalProbes = []string{"35.191.0.0/16", "130.211.0.0/22"}
)

// ProbeRanges are where the health checks come from of load balancers with an external and with an internal address.
func ProbeRanges(external, internal bool) (out []string) {
	if external {
		out = append(out, externalProbes...)
	}
	if internal {
		out = append(out, internalProbes...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// etcdPorts are those of clients and of peers.
var etcdPorts = []int{2379, 2380}

// placed are the planned masters, each with the subnetwork that its network chooses where the document names none, and
// the range of its addresses.
func (f Facts) placed() (out []VM) {
	for _, vm := range f.Planned {
		if i := slices.IndexFunc(f.Subnets.Answer, vm.fits); i >= 0 {
			vm.Subnet, vm.Range = f.Subnets.Answer[i].Name, f.Subnets.Answer[i].Range
		}
		out = append(out, vm)
	}
	return out
}

// fits: a VM can be made in the subnetwork.
func (vm VM) fits(s Subnet) bool {
	return s.Network == vm.Network && (vm.Subnet == "" || vm.Subnet == s.Name)
}

// network judges whether there is one for the masters that are to be made.
func (l *list) network(f Facts) {
	switch {
	case len(f.Planned) == 0:
	case f.NetworkProject != "":
		l.add(record.Warn, subjectNetwork, fmt.Sprintf("not checked: network %s is of project %s", f.Planned[0].Network,
			f.NetworkProject), "Its firewall rules, its subnetworks and its ways out are not asked for here.")
	case answered(l, subjectNetwork, "compute.subnetworks.list", f.Subnets):
		vm := f.Planned[0]
		if slices.ContainsFunc(f.Subnets.Answer, vm.fits) {
			l.ok(subjectNetwork, "network %s has subnetwork %s in %s", vm.Network, vm.Subnet, f.Region)
			return
		}
		l.add(record.Fail, subjectNetwork, fmt.Sprintf("network %s has no subnetwork %s in %s", vm.Network, vm.Subnet,
			f.Region), "No VM can be made there. gce.network and gce.subnetwork of the document name them.",
			"gcloud compute networks subnets list --project="+f.Project+" --filter=region:"+f.Region)
	}
}

// firewall judges whether the rules of the masters' network let in the masters and the health checks. Hierarchical and
// network policies are not seen.
func (l *list) firewall(f Facts) {
	vms := f.masters()
	switch {
	case !f.MakesRules:
		vms = append(vms, f.Planned...)
	case len(vms) == 0:
		l.ok(subjectFirewall, "'quorate create' makes the rules that gce.firewall asks for")
	}
	if len(vms) == 0 || f.NetworkProject != "" || !answered(l, subjectFirewall, "compute.firewalls.list", f.Firewall) {
		return
	}
	before := len(l.found)
	l.betweenMasters(f, vms)
	l.probes(f, vms)
	l.okUnless(before, subjectFirewall, "rules let the masters reach one another, and the health checks reach them")
}

// masters are the VMs that carry the label.
func (f Facts) masters() (out []VM) {
	for _, vm := range f.VMs.Answer {
		if vm.Labelled {
			out = append(out, vm)
		}
	}
	return out
}

func (l *list) betweenMasters(f Facts, vms []VM) {
	var closed []string
	for _, to := range vms {
		for _, from := range vms {
			if from.Place == to.Place && len(vms) > 1 {
				continue
			}
			for _, port := range etcdPorts {
				if ok, by := admits(f.Firewall.Answer, sourceOf(from), to, port); !ok && !f.willAdmit(by, from, to) {
					closed = append(closed, fmt.Sprintf("%s → %s:%d (%s)", from.Name, to.Name, port, by))
				}
			}
		}
	}
	if len(closed) > 0 {
		l.add(record.Fail, subjectFirewall, "the masters do not reach one another's etcd: "+brief(closed),
			"No second replica can join, and no quorum forms.",
			fmt.Sprintf("gcloud compute firewall-rules create %s-etcd --project=%s --network=%s --allow=tcp:2379-2380 "+
				"--source-service-accounts=%s --target-service-accounts=%s", f.Cluster, f.Project, vms[0].Network,
				vms[0].Account, vms[0].Account))
	}
}

func (l *list) probes(f Facts, vms []VM) {
	var closed []string
	ranges := ProbeRanges(f.External.IsValid(), f.Internal.IsValid())
	for _, r := range ranges {
		for _, vm := range vms {
			from := source{ranges: []netip.Prefix{netip.MustParsePrefix(r)}}
			if ok, by := admits(f.Firewall.Answer, from, vm, f.Port); !ok && !f.willAdmit(by, vm) {
				closed = append(closed, fmt.Sprintf("%s → %s:%d (%s)", r, vm.Name, f.Port, by))
			}
		}
	}
	if len(closed) > 0 {
		l.add(record.Fail, subjectFirewall, "health checks do not reach the masters: "+brief(closed),
			"The load balancer takes every master for down, and sends clients to none of them, or blindly to all.",
			fmt.Sprintf("gcloud compute firewall-rules create %s-probes --project=%s --network=%s --allow=tcp:%d "+
				"--source-ranges=%s --target-service-accounts=%s", f.Cluster, f.Project, vms[0].Network, f.Port,
				strings.Join(ranges, ","), vms[0].Account))
	}
}

// willAdmit reports whether what no rule admits is admitted once 'quorate create' has made what is missing: its rules
// are for the masters' account.
func (f Facts) willAdmit(by string, vms ...VM) bool {
	return f.Creates && f.MakesRules && by == noRule &&
		!slices.ContainsFunc(vms, func(v VM) bool { return v.Account != f.Account })
}

// brief shows the first of a long list.
func brief(all []string) string {
	if len(all) > 3 {
		return fmt.Sprintf("%s, and %d more", strings.Join(all[:3], ", "), len(all)-3)
	}
	return strings.Join(all, ", ")
}

// source is where a connection comes from: addresses, and what a VM of the network has besides.
type source struct {
	ranges        []netip.Prefix
	tags          []string
	account       string
	networkOfTags string
}

func sourceOf(vm VM) source {
	s := source{tags: vm.Tags, account: vm.Account, networkOfTags: vm.Network}
	switch {
	case vm.Address.IsValid():
		s.ranges = []netip.Prefix{netip.PrefixFrom(vm.Address, vm.Address.BitLen())}
	case vm.Range.IsValid():
		s.ranges = []netip.Prefix{vm.Range}
	}
	return s
}

// noRule is what admits names where no rule matches.
const noRule = "no rule"

// admits reports whether TCP from somewhere reaches a port of a VM, and by which rule. Of the rules that match, the one
// with the lowest number counts; of two with the same, the one that refuses. Where none matches, GCE refuses.
func admits(rules []FirewallRule, from source, to VM, port int) (ok bool, by string) {
	var first *FirewallRule
	for _, r := range rules {
		if r.Network != to.Network || !r.targets(to) || !r.hasPort(port) || !r.comesFrom(from) {
			continue
		}
		if first == nil || r.Priority < first.Priority || r.Priority == first.Priority && r.Deny {
			first = &r
		}
	}
	if first == nil {
		return false, noRule
	}
	return !first.Deny, first.Name
}

func (r FirewallRule) targets(vm VM) bool {
	if len(r.TargetTags) == 0 && len(r.TargetAccounts) == 0 {
		return true
	}
	return slices.Contains(r.TargetAccounts, vm.Account) ||
		slices.ContainsFunc(r.TargetTags, func(t string) bool { return slices.Contains(vm.Tags, t) })
}

// comesFrom reports whether the rule concerns the source: one that allows has to cover it whole, one that refuses is
// enough where it covers a part.
func (r FirewallRule) comesFrom(s source) bool {
	for _, from := range s.ranges {
		for _, p := range r.SourceRanges {
			if p.Bits() <= from.Bits() && p.Contains(from.Addr()) || r.Deny && p.Overlaps(from) {
				return true
			}
		}
	}
	return s.networkOfTags == r.Network && (s.account != "" && slices.Contains(r.SourceAccounts, s.account) ||
		slices.ContainsFunc(r.SourceTags, func(t string) bool { return slices.Contains(s.tags, t) }))
}

func (r FirewallRule) hasPort(port int) bool {
	for _, p := range r.Ports {
		if !slices.Contains([]string{"tcp", "6", "all"}, p.Protocol) {
			continue
		}
		if len(p.Ranges) == 0 || slices.ContainsFunc(p.Ranges, func(s string) bool { return inRange(s, port) }) {
			return true
		}
	}
	return false
}

// inRange reports whether a port is the one, or in the FROM-TO, that a text names.
func inRange(text string, port int) bool {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	from, err := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	return err == nil && err2 == nil && from <= port && port <= to
}

// wayOut judges whether VMs without an external address reach Google's APIs.
func (l *list) wayOut(f Facts) {
	closed := map[string]VM{} // by subnetwork
	for _, vm := range slices.Concat(f.Planned, f.masters()) {
		if !vm.External && vm.Subnet != "" {
			closed[vm.Subnet] = vm
		}
	}
	if len(closed) == 0 || f.NetworkProject != "" || !answered(l, subjectWayOut, "compute.subnetworks.list", f.Subnets) {
		return
	}
	before := len(l.found)
	for _, s := range f.Subnets.Answer {
		vm, ok := closed[s.Name]
		if !ok || s.PrivateAccess || slices.ContainsFunc(f.NATs.Answer, func(n NAT) bool { return n.serves(s) }) {
			continue
		}
		level := record.Fail
		if f.NATs.Fault != nil {
			level = record.Warn
		}
		l.add(level, subjectWayOut, fmt.Sprintf("subnetwork %s has neither Private Google Access nor a Cloud NAT, "+
			"and %s no "+
			"external address", s.Name, vm.Place), "The masters there reach neither the bucket nor the key nor the "+
			"Compute API.",
			fmt.Sprintf("gcloud compute networks subnets update %s --project=%s --region=%s "+
				"--enable-private-ip-google-access",
				s.Name, f.Project, f.Region))
	}
	l.okUnless(before, subjectWayOut, "VMs without an external address reach Google's APIs")
}

func (n NAT) serves(s Subnet) bool {
	return n.Network == s.Network && (len(n.Subnets) == 0 || slices.Contains(n.Subnets, s.Name))
}

// endpoint judges whether the endpoint's addresses are kept for the cluster.
func (l *list) endpoint(f Facts) {
	if !answered(l, subjectEndpoint, "compute.addresses.list", f.Addresses) {
		return
	}
	for _, want := range []struct {
		ip       netip.Addr
		external bool
		field    string
		flags    string
	}{
		{f.External, true, "endpoint.externalIP", ""},
		{f.Internal, false, "endpoint.internalIP", " --subnet=SUBNET"},
	} {
		if !want.ip.IsValid() {
			continue
		}
		i := slices.IndexFunc(f.Addresses.Answer, func(a Address) bool {
			return a.IP == want.ip &&
				a.External == want.external
		})
		if i >= 0 {
			l.ok(subjectEndpoint, "%s %s is reserved as %s", want.field, want.ip, f.Addresses.Answer[i].Name)
			continue
		}
		if !want.external && f.MakesAddress {
			l.ok(subjectEndpoint, "%s %s is not reserved yet: 'quorate create' does it", want.field, want.ip)
			continue
		}
		l.add(record.Fail, subjectEndpoint, fmt.Sprintf("%s %s is not reserved in %s", want.field, want.ip, f.Region),
			"An address that is not reserved is lost with what holds it, and it is in every certificate and "+
				"kubeconfig. A passthrough load balancer needs a regional one.",
			fmt.Sprintf("gcloud compute addresses create %s-api --project=%s --region=%s --addresses=%s%s", f.Cluster,
				f.Project, f.Region, want.ip, want.flags))
	}
}

// metadata judges the attributes that each VM of the project sees.
func (l *list) metadata(f Facts) {
	if !answered(l, subjectMetadata, "compute.projects.get", f.Metadata) {
		return
	}
	before := len(l.found)
	for _, key := range []string{"startup-script", "startup-script-url", "ssh-keys", "sshKeys"} {
		if f.Metadata.Answer[key] != "" {
			l.add(record.Warn, subjectMetadata, "the project has the attribute "+key,
				"Whoever may set it becomes root on a master whose image has Google's guest agent. The image that "+
					"quorate bakes "+
					"has none.", "gcloud compute project-info remove-metadata --project="+f.Project+" --keys="+key)
		}
	}
	l.okUnless(before, subjectMetadata, "no start-up script and no SSH key is set for the whole project")
}
