package replica

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxWebhookTimeout and maxMatchConditions are kube-apiserver's own limits.
	maxWebhookTimeout  = 30 * time.Second
	maxMatchConditions = 64
)

// authorizers are the names of the two that are always there, as kube-apiserver itself calls them.
var authorizers = []string{"node", "rbac"}

func (a Authorization) validate(f *Faults) {
	var names once
	for i, w := range a.Webhooks {
		at := fmt.Sprintf("authorization.webhooks[%d]", i)
		if !dnsLabel().MatchString(w.Name) || slices.Contains(authorizers, w.Name) {
			f.add(at+".name", w.Name, dnsLabelRule+"; not node or rbac, which are always there")
		}
		names.check(f, at+".name", w.Name)
		w.validate(at, f)
	}
}

func (w Webhook) validate(at string, f *Faults) {
	checkHTTPS(f, at+".server", w.Server)
	checkAuthorities(f, at+".certificateAuthority", w.CertificateAuthority)
	w.validateCredentials(at, f)
	oneOf(f, at+".subjectAccessReviewVersion", w.SubjectAccessReviewVersion, "v1", "v1beta1")
	oneOf(f, at+".failurePolicy", w.FailurePolicy, "NoOpinion", "Deny")
	if t := w.Timeout.Duration(); t <= 0 || t > maxWebhookTimeout {
		f.add(at+".timeout", w.Timeout.String(), fmt.Sprintf("above 0, at most %s", maxWebhookTimeout))
	}
	for _, ttl := range []struct {
		field string
		value Duration
	}{{"authorizedTTL", w.AuthorizedTTL}, {"unauthorizedTTL", w.UnauthorizedTTL}} {
		if ttl.value <= 0 {
			f.add(at+"."+ttl.field, ttl.value.String(), "above 0")
		}
	}
	if n := len(w.MatchConditions); n > maxMatchConditions {
		f.add(at+".matchConditions", fmt.Sprintf("%d conditions", n), fmt.Sprintf("at most %d", maxMatchConditions))
		return
	}
	var expressions once
	for i, m := range w.MatchConditions {
		expressions.expression(f, fmt.Sprintf("%s.matchConditions[%d].expression", at, i), m.Expression)
	}
}

// validateCredentials: what the apiserver shows is in files, because whoever reads the metadata or the image reads
// the document. A value that is no path is not shown: it may be the token or the key itself.
func (w Webhook) validateCredentials(at string, f *Faults) {
	for _, file := range []struct{ field, path string }{
		{"tokenFile", w.TokenFile}, {"clientCertificateFile", w.ClientCertificateFile},
		{"clientKeyFile", w.ClientKeyFile},
	} {
		if file.path != "" && !cleanPath(file.path) {
			*f = append(*f, Fault{Field: at + "." + file.field, Found: notShown, Allowed: pathRule})
		}
	}
	if (w.ClientCertificateFile == "") != (w.ClientKeyFile == "") {
		f.add(at, "one of clientCertificateFile and clientKeyFile", "both, or neither")
	}
}
