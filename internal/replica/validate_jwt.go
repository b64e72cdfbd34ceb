package replica

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxIssuers is kube-apiserver's own limit.
const maxIssuers = 64

func (c *Cluster) validateJWT(f *Faults) {
	if len(c.JWT) > maxIssuers {
		f.add("jwt", fmt.Sprintf("%d issuers", len(c.JWT)), fmt.Sprintf("at most %d", maxIssuers))
		return
	}
	var issuers, discoveries once
	for i, j := range c.JWT {
		at := fmt.Sprintf("jwt[%d]", i)
		issuers.check(f, at+".issuer.url", j.Issuer.URL)
		if j.Issuer.DiscoveryURL != "" {
			discoveries.check(f, at+".issuer.discoveryURL", j.Issuer.DiscoveryURL)
		}
		j.Issuer.validate(at+".issuer", f)
		j.validateClaimRules(at+".claimValidationRules", f)
		j.ClaimMappings.validate(at+".claimMappings", f)
		var expressions once
		for n, rule := range j.UserValidationRules {
			expressions.expression(f, fmt.Sprintf("%s.userValidationRules[%d].expression", at, n), rule.Expression)
		}
	}
}

func (i JWTIssuer) validate(at string, f *Faults) {
	checkHTTPS(f, at+".url", i.URL)
	if i.DiscoveryURL != "" {
		checkHTTPS(f, at+".discoveryURL", i.DiscoveryURL)
		if strings.TrimRight(i.DiscoveryURL, "/") == strings.TrimRight(i.URL, "/") {
			f.add(at+".discoveryURL", i.DiscoveryURL, "another URL than "+at+".url, or none")
		}
	}
	checkAuthorities(f, at+".certificateAuthority", i.CertificateAuthority)
	if len(i.Audiences) == 0 {
		f.add(at+".audiences", "", "at least one audience")
	}
	var audiences once
	for n, audience := range i.Audiences {
		field := fmt.Sprintf("%s.audiences[%d]", at, n)
		if audience == "" {
			f.add(field, "", "an audience")
			continue
		}
		audiences.check(f, field, audience)
	}
	if policy := i.AudienceMatchPolicy; policy != "MatchAny" && (policy != "" || len(i.Audiences) > 1) {
		f.add(at+".audienceMatchPolicy", policy, "MatchAny; nothing only where there is one audience")
	}
}

func (j JWT) validateClaimRules(at string, f *Faults) {
	var claims, expressions once
	for i, r := range j.ClaimValidationRules {
		field := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case r.Claim != "" && r.Expression == "":
			claims.check(f, field+".claim", r.Claim)
			if r.Message != "" {
				f.add(field+".message", r.Message, "none beside a claim")
			}
		case r.Claim == "" && r.Expression != "":
			expressions.expression(f, field+".expression", r.Expression)
			if r.RequiredValue != "" {
				f.add(field+".requiredValue", r.RequiredValue, "none beside an expression")
			}
		default:
			f.add(field, claimOrExpression(r.Claim), "either a claim or an expression")
		}
	}
}

// claimOrExpression says which of the two stand there where it is not exactly one.
func claimOrExpression(claim string) string {
	if claim == "" {
		return ""
	}
	return "claim and expression"
}

func (m ClaimMappings) validate(at string, f *Faults) {
	m.Username.validate(at+".username", f)
	if m.Groups != (PrefixedClaim{}) {
		m.Groups.validate(at+".groups", f)
	}
	if m.UID.Claim != "" && m.UID.Expression != "" {
		f.add(at+".uid", "claim and expression", "either a claim or an expression, or neither")
	}
	if m.UID.Expression != "" {
		checkExpression(f, at+".uid.expression", m.UID.Expression)
	}
	var keys once
	for i, e := range m.Extra {
		field := fmt.Sprintf("%s.extra[%d]", at, i)
		e.validate(field, f)
		keys.check(f, field+".key", e.Key)
	}
}

func (p PrefixedClaim) validate(at string, f *Faults) {
	switch {
	case (p.Claim == "") == (p.Expression == ""):
		f.add(at, claimOrExpression(p.Claim), "either a claim with its prefix or an expression")
	case p.Expression != "":
		checkExpression(f, at+".expression", p.Expression)
		if p.Prefix != nil {
			f.add(at+".prefix", *p.Prefix, "none beside an expression")
		}
	case p.Prefix == nil:
		f.add(at+".prefix", "",
			`what is put before the claim's value, so that it is none of the cluster's own names; "" puts nothing there`)
	}
}

func (e ExtraClaim) validate(at string, f *Faults) {
	domain, _, _ := strings.Cut(e.Key, "/")
	switch {
	case e.Key != strings.ToLower(e.Key), len(validation.IsDomainPrefixedPath(field.NewPath("key"), e.Key)) > 0:
		f.add(at+".key", e.Key, "DOMAIN/PATH in lower case, such as example.com/department")
	case inDomain(domain, "k8s.io"), inDomain(domain, "kubernetes.io"):
		f.add(at+".key", e.Key, "another domain than Kubernetes' own")
	}
	checkExpression(f, at+".valueExpression", e.ValueExpression)
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }
