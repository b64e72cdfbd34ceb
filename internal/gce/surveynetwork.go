package gce

import (
	"context"
	"fmt"
	"net/netip"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/setup"
)

// aboutProject also finds the project's id where its number was given: gcloud wants the id.
func (s *Survey) aboutProject(ctx context.Context, f *setup.Facts) {
	f.Project = s.conf.Project
	f.Metadata = survey(ctx, s, computeAPI, "project "+s.conf.Project, func(ctx context.Context) (map[string]string,
		error) {
		p, err := s.compute.Projects.Get(s.conf.Project).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		f.Project = p.Name
		if p.CommonInstanceMetadata == nil {
			return nil, nil
		}
		out := map[string]string{}
		for _, i := range p.CommonInstanceMetadata.Items {
			if i.Value != nil {
				out[i.Key] = *i.Value
			}
		}
		return out, nil
	})
}

func (s *Survey) firewall(ctx context.Context) setup.Asked[[]setup.FirewallRule] {
	return survey(ctx, s, computeAPI, "the firewall rules", func(ctx context.Context) (out []setup.FirewallRule,
		err error) {
		err = s.compute.Firewalls.List(s.conf.Project).Pages(ctx, func(list *compute.FirewallList) error {
			for _, r := range list.Items {
				if r.Disabled || r.Direction == "EGRESS" {
					continue
				}
				rule, err := ruleOf(r)
				if err != nil {
					return finalError{err}
				}
				out = append(out, rule)
			}
			return nil
		})
		return out, err
	})
}

// ruleOf translates a rule. A range that cannot be read is an error: without it the rule would look narrower.
func ruleOf(r *compute.Firewall) (setup.FirewallRule, error) {
	out := setup.FirewallRule{Name: r.Name, Network: lastPart(r.Network), Deny: len(r.Denied) > 0, Priority: r.Priority,
		SourceTags: r.SourceTags, SourceAccounts: r.SourceServiceAccounts, TargetTags: r.TargetTags,
		TargetAccounts: r.TargetServiceAccounts}
	for _, a := range r.Allowed {
		out.Ports = append(out.Ports, setup.Ports{Protocol: a.IPProtocol, Ranges: a.Ports})
	}
	for _, d := range r.Denied {
		out.Ports = append(out.Ports, setup.Ports{Protocol: d.IPProtocol, Ranges: d.Ports})
	}
	for _, text := range r.SourceRanges {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return out, fmt.Errorf("found source range %q at firewall rule %s", shorten(text), r.Name)
		}
		out.SourceRanges = append(out.SourceRanges, p)
	}
	return out, nil
}

func (s *Survey) subnets(ctx context.Context) setup.Asked[[]setup.Subnet] {
	return survey(ctx, s, computeAPI, "the subnetworks of "+s.conf.Region, func(ctx context.Context) (
		out []setup.Subnet,
		err error) {
		err = s.compute.Subnetworks.List(s.conf.Project, s.conf.Region).Pages(ctx, func(
			list *compute.SubnetworkList) error {
			for _, n := range list.Items {
				addresses, _ := netip.ParsePrefix(n.IpCidrRange) // one for IPv6 alone has none
				out = append(out, setup.Subnet{Name: n.Name, Network: lastPart(n.Network), Range: addresses,
					PrivateAccess: n.PrivateIpGoogleAccess})
			}
			return nil
		})
		return out, err
	})
}

func (s *Survey) nats(ctx context.Context) setup.Asked[[]setup.NAT] {
	return survey(ctx, s, computeAPI, "the routers of "+s.conf.Region, func(ctx context.Context) (out []setup.NAT,
		err error) {
		err = s.compute.Routers.List(s.conf.Project, s.conf.Region).Pages(ctx, func(list *compute.RouterList) error {
			for _, r := range list.Items {
				for _, n := range r.Nats {
					nat := setup.NAT{Name: n.Name, Network: lastPart(r.Network)}
					for _, sub := range n.Subnetworks {
						nat.Subnets = append(nat.Subnets, lastPart(sub.Name))
					}
					out = append(out, nat)
				}
			}
			return nil
		})
		return out, err
	})
}

func (s *Survey) addresses(ctx context.Context) setup.Asked[[]setup.Address] {
	return survey(ctx, s, computeAPI, "the addresses of "+s.conf.Region, func(ctx context.Context) (out []setup.Address,
		err error) {
		err = s.compute.Addresses.List(s.conf.Project, s.conf.Region).Pages(ctx, func(list *compute.AddressList) error {
			for _, a := range list.Items {
				ip, err := netip.ParseAddr(a.Address)
				if err != nil {
					continue // one that is being made has none yet
				}
				out = append(out, setup.Address{Name: a.Name, IP: ip, External: a.AddressType != "INTERNAL"})
			}
			return nil
		})
		return out, err
	})
}
