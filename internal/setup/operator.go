package setup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Permissions are what somebody needs, by what they are on.
type Permissions struct {
	Project, Bucket, Account []string
}

// The permissions of an operator, as docs/iam.md has them.
var (
	// listing is what it takes to read what there is.
	listing = []string{"compute.instances.list", "compute.disks.list", "compute.disks.get"}
	// making is what it takes to make VMs and their disks.
	making = []string{"compute.disks.create", "compute.disks.setLabels", "compute.disks.use", "compute.instances.create",
		"compute.instances.get", "compute.instances.setLabels", "compute.instances.setMetadata",
		"compute.instances.setServiceAccount", "compute.zoneOperations.get"}
	// onOthers are those that may be given on a network or an image alone, and those may be another project's.
	onOthers    = []string{"compute.images.get", "compute.images.useReadOnly", "compute.subnetworks.use"}
	ruleRights  = []string{"compute.globalOperations.get", "compute.networks.updatePolicy"}
	balanceUses = []string{"compute.addresses.get", "compute.addresses.list", "compute.networkEndpointGroups.use",
		"compute.networks.use", "compute.regionBackendServices.use", "compute.regionHealthChecks.useReadOnly",
		"compute.regionOperations.get"}
	externalAddress = []string{"compute.addresses.use"}
	// onDemand is what it takes to move an external address between VMs and a load balancer on demand, which needs to
	// be read and made by whoever adds a master.
	onDemand = []string{"compute.instances.addAccessConfig", "compute.instances.deleteAccessConfig",
		"compute.subnetworks.useExternalIp"}
	internalAddress = []string{"compute.addresses.createInternal", "compute.addresses.useInternal"}
	// balancerParts are the kinds of the load balancer's parts that are made.
	balancerParts = []string{"regionHealthChecks", "networkEndpointGroups", "regionBackendServices", "forwardingRules"}
	actAs         = []string{"iam.serviceAccounts.actAs"}
)

// ToMakeMasters is what who runs `quorate create` or `quorate add` needs by a document; around: also what surrounds the
// masters is made.
func ToMakeMasters(c *replica.Cluster, around bool) Permissions {
	project := slices.Concat(listing, making, onOthers)
	if len(c.GCE.Tags) > 0 {
		project = append(project, "compute.instances.setTags")
	}
	if strings.Contains(c.GCE.Image, "family/") {
		project = append(project, "compute.images.getFromFamily")
	}
	if around && len(c.GCE.Firewall.APISources) > 0 {
		project = append(project, ruleRights...)
		project = append(project, getAndCreate("firewalls")...)
	}
	around = around || c.LoadBalancer().OnDemand // each command reads them
	if balancer := c.LoadBalancer(); around && balancer.Type != "" {
		project = append(project, balanceUses...)
		for _, kind := range balancerParts {
			project = append(project, getAndCreate(kind)...)
		}
		address := externalAddress
		if balancer.OnDemand {
			project = append(project, onDemand...)
		}
		if balancer.OnDemand && len(c.GCE.Firewall.APISources) > 0 {
			project = append(project, "compute.firewalls.get") // they are read with the rest
		}
		if balancer.Type == replica.InternalBalancer {
			address = internalAddress
		}
		project = append(project, address...)
	}
	slices.Sort(project)
	return Permissions{Project: slices.Compact(project), Bucket: bucketRights, Account: actAs}
}

func getAndCreate(kind string) []string {
	return []string{"compute." + kind + ".get", "compute." + kind + ".create"}
}

// operator judges what who runs the command may do.
func (l *list) operator(f Facts) {
	before, asked := len(l.found), 0
	for _, on := range []struct {
		what, permission string
		needs            []string
		has              Asked[[]string]
		mend             string
	}{
		{"project " + f.Project, "resourcemanager.projects.get", f.Needs.Project, f.HasOnProject,
			"gcloud projects add-iam-policy-binding " + f.Project + " --member=user:YOU --role=ROLE"},
		{"bucket " + f.BucketName, "storage.buckets.get", f.Needs.Bucket, f.HasOnBucket,
			"gcloud storage buckets add-iam-policy-binding gs://" + f.BucketName + " --member=user:YOU --role=projects/" +
				f.Project + "/roles/quorateRecord"},
		{"service account " + f.Account, "iam.serviceAccounts.get", f.Needs.Account, f.HasOnAccount,
			"gcloud iam service-accounts add-iam-policy-binding " + f.Account + " --project=" + f.Project +
				" --member=user:YOU --role=roles/iam.serviceAccountUser"},
	} {
		if len(on.needs) == 0 || on.has.Fault != nil && on.has.Fault.Why == Absent {
			continue // nobody wants to know, or what is absent has a finding of its own
		}
		if asked++; answered(l, subjectOperator, on.permission, on.has) {
			l.lacks(on.what, on.needs, on.has.Answer, on.mend)
		}
	}
	if asked > 0 {
		l.okUnless(before, subjectOperator, "who runs this may make the masters and what is around them")
	}
}

// lacks names the permissions that the caller lacks. Those that may be given elsewhere are only warned of.
func (l *list) lacks(what string, needs, has []string, mend string) {
	var certain, maybe []string
	for _, p := range needs {
		switch {
		case slices.Contains(has, p):
		case slices.Contains(onOthers, p):
			maybe = append(maybe, p)
		default:
			certain = append(certain, p)
		}
	}
	const why = "docs/iam.md says what each command needs, and which of Google's roles have it. What was granted a " +
		"moment ago takes some minutes."
	if len(certain) > 0 {
		l.add(record.Fail, subjectOperator, fmt.Sprintf("who runs this lacks on %s: %s", what, strings.Join(certain, ", ")),
			why, mend)
	}
	if len(maybe) > 0 {
		l.add(record.Warn, subjectOperator, fmt.Sprintf("who runs this lacks on %s, unless the image or the network "+
			"gives it: %s", what, strings.Join(maybe, ", ")), why, mend)
	}
}
