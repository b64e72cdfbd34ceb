package setup

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/record"
)

// The permissions of the masters' account, as docs/iam.md has them.
var (
	bucketRights  = []string{"storage.objects.list", "storage.objects.get", "storage.objects.create"}
	keyRights     = []string{"cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt"}
	computeRights = []string{"compute.instances.list", "compute.instances.get", "compute.disks.list",
		"compute.disks.get"}
	endpointRights = []string{"compute.networkEndpointGroups.get", "compute.networkEndpointGroups.attachNetworkEndpoints",
		"compute.networkEndpointGroups.detachNetworkEndpoints", "compute.instances.use", "compute.zoneOperations.get"}
)

// The roles that docs/iam.md makes of them, in the project.
const (
	recordRole   = "quorateRecord"
	deleteRole   = "quorateRecordDelete"
	computeRole  = "quorateCompute"
	endpointRole = "quorateEndpoint"
)

// OwnRoles are the full names of these roles.
func OwnRoles(project string) (out []string) {
	for _, name := range []string{recordRole, deleteRole, computeRole, endpointRole} {
		out = append(out, ownRole(project, name))
	}
	return out
}

func ownRole(project, name string) string { return "projects/" + project + "/roles/" + name }

// makeRole are the commands that give a role of quorate's own what it needs; none where it has that.
func (f Facts) makeRole(name string, rights []string) []string {
	role := f.Roles[ownRole(f.Project, name)]
	switch {
	case role.Fault != nil && role.Fault.Why == Absent:
		return []string{command("gcloud iam roles create", name, "--project="+f.Project,
			"--permissions="+strings.Join(rights, ","))}
	case role.Fault != nil:
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return slices.Contains(role.Answer, r) })
	if len(missing) == 0 || len(role.Answer) == 0 {
		return nil
	}
	return []string{command("gcloud iam roles update", name, "--project="+f.Project,
		"--add-permissions="+strings.Join(missing, ","))}
}

// give are the commands that give a role of quorate's own to the masters' account.
func (f Facts) give(name string, rights []string, binding ...string) []string {
	return append(f.makeRole(name, rights), command(append(binding, "--member=serviceAccount:"+f.account(),
		"--role="+ownRole(f.Project, name))...))
}

const deleteRight = "storage.objects.delete"

// rights judges what the masters' account may do. A permission that is given through a group, a folder or the
// organization is not seen, so what is lacking fails only where nothing else could give it.
func (l *list) rights(f Facts) {
	account := f.account()
	if account == "" {
		l.add(record.Warn, subjectRights, "not checked: no master's VM is there that would show the masters' account",
			"Without its permissions a boot waits.", "quorate gce check --service-account "+
				"NAME@"+f.Project+".iam.gserviceaccount.com")
		return
	}
	l.serviceAccount(f, account)
	g := grants{account: account, project: f.Project, roles: f.Roles, inherited: f.ProjectPolicy}
	readable := answered(l, subjectRights, "resourcemanager.projects.getIamPolicy", f.ProjectPolicy)
	if answered(l, subjectRights, "storage.buckets.getIamPolicy", f.BucketPolicy) {
		before := len(l.found)
		policies := []Policy{f.BucketPolicy.Answer, f.ProjectPolicy.Answer}
		l.lacking(g, readable, policies, "bucket "+f.BucketName, bucketRights, f.give(recordRole, bucketRights,
			"gcloud storage buckets add-iam-policy-binding gs://"+f.BucketName)...)
		l.deletions(g, f, policies)
		l.okUnless(before, subjectRights, "%s may list, read and create in the bucket, and delete only what is "+
			"replaced",
			account)
	}
	if f.KeyName != "" && answered(l, subjectRights, "cloudkms.cryptoKeys.getIamPolicy", f.KeyPolicy) {
		before := len(l.found)
		name := keyFlags(f.KeyName)
		l.lacking(g, readable && f.RingPolicy.Fault == nil,
			[]Policy{f.KeyPolicy.Answer, f.RingPolicy.Answer, f.ProjectPolicy.Answer}, "the key", keyRights,
			command("gcloud kms keys add-iam-policy-binding", name.key, name.ring, "--member=serviceAccount:"+account,
				"--role=roles/cloudkms.cryptoKeyEncrypterDecrypter"))
		l.okUnless(before, subjectRights, "%s may encrypt and decrypt with the key", account)
	}
	if readable {
		before := len(l.found)
		onProject, binding := []Policy{f.ProjectPolicy.Answer}, "gcloud projects add-iam-policy-binding "+f.Project
		l.lacking(g, true, onProject, "project "+f.Project, computeRights, f.give(computeRole, computeRights, binding)...)
		l.okUnless(before, subjectRights, "%s may read VMs and disks", account)
		if before = len(l.found); f.Balanced {
			l.lacking(g, true, onProject, "project "+f.Project, endpointRights,
				f.give(endpointRole, endpointRights, binding)...)
			l.okUnless(before, subjectRights, "%s may attach its VM to the load balancer", account)
		}
	}
}

// serviceAccount judges whether the masters' account can be used at all.
func (l *list) serviceAccount(f Facts, account string) {
	name, domain, _ := strings.Cut(account, "@")
	switch fault := f.ServiceAccount.Fault; {
	case fault != nil && fault.Why == Absent:
		l.add(record.Fail, subjectRights, fmt.Sprintf("service account %s does not exist", account),
			"The masters' VMs cannot be made without it. What it may do is granted to it next.",
			command("gcloud iam service-accounts create", name, "--project="+strings.TrimSuffix(domain,
				".iam.gserviceaccount.com")))
	case fault == nil && f.ServiceAccount.Answer:
		l.add(record.Fail, subjectRights, fmt.Sprintf("service account %s is disabled", account),
			"Whatever it may do is refused.", command("gcloud iam service-accounts enable", account))
	case fault != nil && fault.Why == Refused:
		answered(l, subjectRights, "iam.serviceAccounts.get", f.ServiceAccount)
	}
}

// account is the masters' service account: the one that was named, or that of the first VM that has one.
func (f Facts) account() string {
	if f.Account != "" {
		return f.Account
	}
	for _, vm := range f.VMs.Answer {
		if vm.Account != "" {
			return vm.Account
		}
	}
	return ""
}

// lacking names the permissions that no policy gives without a condition. It is certain only where all policies could
// be read.
func (l *list) lacking(g grants, certain bool, policies []Policy, on string, rights []string, mend ...string) {
	var missing []string
	for _, right := range rights {
		given, unsure := g.given(right, policies)
		if slices.ContainsFunc(given, func(b Binding) bool { return b.Condition == "" }) {
			continue
		}
		certain = certain && !unsure && len(given) == 0
		missing = append(missing, right)
	}
	if len(missing) == 0 {
		return
	}
	level, seen := record.Fail, "no policy that can be read here gives it to "+g.account
	if !certain {
		level, seen = record.Warn, "not proven here that "+g.account+" has it: a condition, a group or a policy that "+
			"cannot be read here may give it"
	}
	l.add(level, subjectRights, fmt.Sprintf("%s on %s: %s", strings.Join(missing, ", "), on, seen),
		"Without it a boot waits, or a repair does. docs/iam.md says for what each is needed, and makes the roles.",
		mend...)
}

// deletions judges where in the bucket the account may delete.
func (l *list) deletions(g grants, f Facts, policies []Policy) {
	given, unsure := g.given(deleteRight, policies)
	reports := strings.TrimSuffix(f.Prefix, "/") + ".reports/"
	allowed := []string{f.Prefix + "marks/", f.Prefix + record.SnapshotsFolder, reports}
	covered := map[string]bool{}
	for _, b := range given {
		prefixes, ok := conditionPrefixes(b.Condition, f.BucketName)
		switch {
		case b.Condition == "":
			l.add(record.Fail, subjectRights, fmt.Sprintf("%s may delete every object of the bucket (%s for %s)",
				g.account,
				b.Role, strings.Join(b.Members, ", ")),
				"A claim, an outcome or the bundle that is deleted can be written again: everything rests on that "+
					"they cannot be. docs/iam.md has the roles and conditions that leave out deletion.",
				g.remove(b, f))
			return
		case !ok:
			l.add(record.Warn, subjectRights, fmt.Sprintf("cannot tell where %s may delete: %s", b.Role, b.Condition),
				`Only resource.name.startsWith("…"), joined by ||, is understood here. 'quorate record check --impersonate ACCOUNT' `+
					"proves it.")
			return
		}
		for _, p := range prefixes {
			if !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(p, a) }) {
				l.add(record.Fail, subjectRights, fmt.Sprintf("%s may delete below %q", g.account, p),
					"Only marks, snapshots and reports may be replaced: "+strings.Join(allowed, ", "), g.remove(b, f))
			}
			covered[p] = true
		}
	}
	for _, a := range allowed {
		if covered[a] || unsure {
			continue
		}
		level, why := record.Warn, "Old snapshots or reports stay, or 'quorate health' shows replicas as not heard."
		if a == allowed[0] {
			level, why = record.Fail, "A mark is overwritten each 30 s, which takes create and delete. Without that "+
				"a disk that was set back, and a VM that still runs, are not noticed."
		}
		l.add(level, subjectRights, fmt.Sprintf("%s may not delete, and so not overwrite, below %s", g.account, a), why,
			f.give(deleteRole, []string{deleteRight}, "gcloud storage buckets add-iam-policy-binding gs://"+f.BucketName,
				fmt.Sprintf(
					`--condition='title=%s,expression=resource.name.startsWith("projects/_/buckets/%s/objects/%s")'`,
					title(a), f.BucketName, a))...)
	}
}

// title is a condition's for a folder.
func title(folder string) string {
	return strings.ReplaceAll(strings.Trim(folder, "/"), "/", "-")
}

// grants finds what an account is given.
type grants struct {
	account, project string
	roles            map[string]Asked[[]string]
	// inherited is the project's policy: the basic roles decide who the members projectEditor:P and the like are.
	inherited Asked[Policy]
}

// given are the bindings that give the account a permission. unsure: others might, such as those of a group.
func (g grants) given(permission string, policies []Policy) (out []Binding, unsure bool) {
	for _, policy := range policies {
		for _, b := range policy {
			mine, maybe := g.holds(b.Members)
			if !mine && !maybe {
				continue
			}
			role := g.roles[b.Role]
			switch {
			case role.Fault != nil && role.Fault.Why == Absent: // one that was deleted gives nothing
			case role.Fault != nil:
				unsure = true
			case !slices.Contains(role.Answer, permission):
			case mine:
				out = append(out, b)
			default:
				unsure = true
			}
		}
	}
	return out, unsure
}

// holds reports whether the account is one of the members, or could be.
func (g grants) holds(members []string) (mine, maybe bool) {
	for _, m := range members {
		kind, who, _ := strings.Cut(m, ":")
		switch kind {
		case "serviceAccount":
			mine = mine || who == g.account
		case "allUsers", "allAuthenticatedUsers":
			mine = true
		case "projectOwner", "projectEditor", "projectViewer":
			mine = mine || g.hasBasic("roles/"+strings.ToLower(strings.TrimPrefix(kind, "project")))
		case "group", "domain", "principalSet":
			maybe = true
		}
	}
	return mine, maybe
}

// hasBasic reports whether the project's policy gives the account a basic role.
func (g grants) hasBasic(role string) bool {
	for _, b := range g.inherited.Answer {
		if b.Role == role && slices.Contains(b.Members, "serviceAccount:"+g.account) {
			return true
		}
	}
	return false
}

// remove is the command that takes a binding away from the account.
func (g grants) remove(b Binding, f Facts) string {
	member := "serviceAccount:" + g.account
	if !slices.Contains(b.Members, member) {
		member = b.Members[0]
	}
	on := "storage buckets remove-iam-policy-binding gs://" + f.BucketName
	if slices.ContainsFunc(f.ProjectPolicy.Answer, func(p Binding) bool {
		return p.Role == b.Role &&
			slices.Equal(p.Members, b.Members)
	}) {
		on = "projects remove-iam-policy-binding " + f.Project
	}
	return command("gcloud", on, "--member="+member, "--role="+b.Role, "--all")
}

var (
	startsWith = regexp.MustCompile(`resource\.name\.startsWith\(\s*["']([^"']*)["']\s*\)`)
	onlyOr     = regexp.MustCompile(`^[\s()|]*$`)
)

// conditionPrefixes are the names, within the bucket, that a condition's resources begin with. ok is false for an
// expression that says anything else: the language has more than can be judged here.
func conditionPrefixes(expression, bucket string) (prefixes []string, ok bool) {
	if rest := startsWith.ReplaceAllString(expression, ""); !onlyOr.MatchString(rest) ||
		strings.Count(rest, "||") != len(startsWith.FindAllString(expression, -1))-1 {
		return nil, false
	}
	for _, m := range startsWith.FindAllStringSubmatch(expression, -1) {
		p, inBucket := strings.CutPrefix(m[1], "projects/_/buckets/"+bucket+"/objects/")
		if !inBucket {
			p = "" // what names no object of this bucket lets it delete all of them, or none: the worse is taken
		}
		prefixes = append(prefixes, p)
	}
	return prefixes, true
}
