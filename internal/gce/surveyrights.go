package gce

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/cloudkms/v1"
	"google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/iam/v1"

	"github.com/quorate/quorate/internal/setup"
)

// policyVersion is the form of a policy that has conditions.
const policyVersion = 3

const (
	keysAPI = "Cloud KMS"
	iamAPI  = "IAM"
)

func (s *Survey) policies(ctx context.Context, f *setup.Facts) {
	f.ProjectPolicy = survey(ctx, s, "the Resource Manager", "the policy of project "+s.conf.Project,
		func(ctx context.Context) (out setup.Policy, err error) {
			p, err := s.project.Projects.GetIamPolicy(s.conf.Project, &cloudresourcemanager.GetIamPolicyRequest{
				Options: &cloudresourcemanager.GetPolicyOptions{RequestedPolicyVersion: policyVersion}}).Context(
				ctx).Do()
			if err != nil {
				return nil, err
			}
			for _, b := range p.Bindings {
				one := setup.Binding{Role: b.Role, Members: b.Members}
				if b.Condition != nil {
					one.Condition = b.Condition.Expression
				}
				out = append(out, one)
			}
			return out, nil
		})
}

// key asks for the key. The facts name none where the key stands in the document.
func (s *Survey) key(ctx context.Context, f *setup.Facts) {
	if f.KeyName == "" {
		return
	}
	f.Key = survey(ctx, s, keysAPI, "key "+f.KeyName, func(ctx context.Context) (out setup.Key, err error) {
		k, err := s.keys.Projects.Locations.KeyRings.CryptoKeys.Get(f.KeyName).Context(ctx).Do()
		if err != nil {
			return out, err
		}
		out.Purpose = k.Purpose
		if k.Primary != nil {
			out.Primary, out.PrimaryName = k.Primary.State, lastPart(k.Primary.Name)
		}
		return out, nil
	})
}

func (s *Survey) keyPolicy(ctx context.Context, f *setup.Facts) {
	if f.KeyName == "" {
		return
	}
	f.KeyPolicy = survey(ctx, s, keysAPI, "the policy of key "+f.KeyName, func(ctx context.Context) (setup.Policy,
		error) {
		p, err := s.keys.Projects.Locations.KeyRings.CryptoKeys.GetIamPolicy(f.KeyName).
			OptionsRequestedPolicyVersion(policyVersion).Context(ctx).Do()
		return kmsPolicy(p, err)
	})
}

func (s *Survey) ringPolicy(ctx context.Context, f *setup.Facts) {
	if f.KeyName == "" {
		return
	}
	ring, _, _ := strings.Cut(f.KeyName, "/cryptoKeys/")
	f.RingPolicy = survey(ctx, s, keysAPI, "the policy of key ring "+ring, func(ctx context.Context) (setup.Policy,
		error) {
		p, err := s.keys.Projects.Locations.KeyRings.GetIamPolicy(ring).
			OptionsRequestedPolicyVersion(policyVersion).Context(ctx).Do()
		return kmsPolicy(p, err)
	})
}

func kmsPolicy(p *cloudkms.Policy, err error) (out setup.Policy, _ error) {
	if err != nil {
		return nil, err
	}
	for _, b := range p.Bindings {
		one := setup.Binding{Role: b.Role, Members: b.Members}
		if b.Condition != nil {
			one.Condition = b.Condition.Expression
		}
		out = append(out, one)
	}
	return out, nil
}

// account asks for the masters' service account.
func (s *Survey) account(ctx context.Context, f *setup.Facts) {
	if f.Account == "" {
		return
	}
	f.ServiceAccount = survey(ctx, s, iamAPI, "service account "+f.Account, func(ctx context.Context) (bool, error) {
		a, err := s.roles.Projects.ServiceAccounts.Get(s.accountPath(f.Account)).Context(ctx).Do()
		if err != nil {
			return false, err
		}
		return a.Disabled, nil
	})
}

// accountPath is what IAM calls a service account. Those that Google makes by itself do not name their project.
func (s *Survey) accountPath(email string) string {
	project := s.conf.Project
	if _, domain, ok := strings.Cut(email, "@"); ok {
		if named, ok := strings.CutSuffix(domain, ".iam.gserviceaccount.com"); ok {
			project = named
		}
	}
	return "projects/" + project + "/serviceAccounts/" + email
}

// callerOnProject asks which of the permissions that are needed on the project the caller has.
func (s *Survey) callerOnProject(ctx context.Context, f *setup.Facts) {
	if needs := f.Needs.Project; len(needs) > 0 {
		f.HasOnProject = survey(ctx, s, "the Resource Manager", "permissions on project "+s.conf.Project,
			func(ctx context.Context) ([]string, error) {
				r, err := s.project.Projects.TestIamPermissions(s.conf.Project,
					&cloudresourcemanager.TestIamPermissionsRequest{Permissions: needs}).Context(ctx).Do()
				if err != nil {
					return nil, err
				}
				return r.Permissions, nil
			})
	}
}

func (s *Survey) callerOnAccount(ctx context.Context, f *setup.Facts) {
	if needs := f.Needs.Account; len(needs) > 0 {
		f.HasOnAccount = survey(ctx, s, iamAPI, "permissions on service account "+f.Account,
			func(ctx context.Context) ([]string, error) {
				r, err := s.roles.Projects.ServiceAccounts.TestIamPermissions(s.accountPath(f.Account),
					&iam.TestIamPermissionsRequest{Permissions: needs}).Context(ctx).Do()
				if err != nil {
					return nil, err
				}
				return r.Permissions, nil
			})
	}
}

// permissions asks what the roles that the policies name permit: Google changes its own, and others are the project's.
func (s *Survey) permissions(ctx context.Context, f *setup.Facts) {
	names := setup.OwnRoles(f.Project)
	for _, policy := range []setup.Policy{f.BucketPolicy.Answer, f.KeyPolicy.Answer, f.RingPolicy.Answer,
		f.ProjectPolicy.Answer} {
		for _, b := range policy {
			names = append(names, b.Role)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	answers := make([]setup.Asked[[]string], len(names))
	var group errgroup.Group
	group.SetLimit(surveyQuestions)
	for n, name := range names {
		group.Go(func() error { answers[n] = s.role(ctx, name); return nil })
	}
	_ = group.Wait() // no question returns an error
	f.Roles = map[string]setup.Asked[[]string]{}
	for n, name := range names {
		f.Roles[name] = answers[n]
	}
}

func (s *Survey) role(ctx context.Context, name string) setup.Asked[[]string] {
	return survey(ctx, s, iamAPI, "role "+name, func(ctx context.Context) ([]string, error) {
		switch {
		case strings.HasPrefix(name, "projects/"):
			r, err := s.roles.Projects.Roles.Get(name).Context(ctx).Do()
			if err != nil {
				return nil, err
			}
			return slices.Clone(r.IncludedPermissions), nil
		case strings.HasPrefix(name, "organizations/"):
			r, err := s.roles.Organizations.Roles.Get(name).Context(ctx).Do()
			if err != nil {
				return nil, err
			}
			return slices.Clone(r.IncludedPermissions), nil
		}
		r, err := s.roles.Roles.Get(name).Context(ctx).Do()
		if err != nil {
			return nil, err
		}
		return slices.Clone(r.IncludedPermissions), nil
	})
}
