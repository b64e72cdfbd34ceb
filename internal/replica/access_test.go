package replica_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// withAccess is a valid document with an issuer and a webhook that have everything that one can have.
func withAccess(t *testing.T) *replica.Cluster {
	t.Helper()
	access, err := os.ReadFile("testdata/access.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := replica.Source{Name: "cluster.yaml", Data: readExample(t)}
	c, err := replica.Load(example, replica.Source{Name: "access.yaml", Data: access})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestIssuersAndWebhooksAreRead(t *testing.T) {
	c := withAccess(t)
	if p := c.JWT[1].ClaimMappings.Username.Prefix; p == nil || *p != "" {
		t.Errorf("a prefix of nothing was read as %v", p)
	}
	if c.JWT[0].ClaimMappings.Username.Prefix != nil || *c.JWT[0].ClaimMappings.Groups.Prefix != "example:" {
		t.Errorf("the mappings were read as %+v", c.JWT[0].ClaimMappings)
	}
	w := c.Authorization.Webhooks[1]
	got := fmt.Sprint(w.SubjectAccessReviewVersion, " ", w.Timeout, " ", w.AuthorizedTTL, " ", w.UnauthorizedTTL)
	if want := "v1 3s 5m0s 30s"; got != want {
		t.Errorf("the defaults are %s, want %s", got, want)
	}
	given := c.Authorization.Webhooks[0]
	if given.SubjectAccessReviewVersion != "v1beta1" || given.Timeout.String() != "1s" ||
		given.AuthorizedTTL.String() != "1m0s" {
		t.Errorf("the defaults won: %+v", given)
	}
}

func TestDefaultsLeaveACopysWebhooksAlone(t *testing.T) {
	c := &replica.Cluster{Authorization: replica.Authorization{Webhooks: []replica.Webhook{{Name: "a"}}}}
	if _, err := c.Show(); err != nil {
		t.Fatal(err)
	}
	if c.Authorization.Webhooks[0].Timeout != 0 {
		t.Error("showing the document changed it")
	}
}

// What is shown of an issuer and a webhook is what was read.
func TestWhatIsShownOfAccessIsReadAgain(t *testing.T) {
	c := withAccess(t)
	shown, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	again, err := replica.Load(replica.Source{Name: "shown", Data: shown})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := again.Show(); err != nil || string(again) != string(shown) {
		t.Errorf("%v\n%s\nbecame\n%s", err, shown, again)
	}
}

// Each case breaks one thing; want is the field that must be named, and only it.
func TestAccessThatTheAPIServerWouldNotTakeIsRefused(t *testing.T) {
	certificate, key := selfSigned(t)
	many := strings.Split(strings.Repeat("x", 65), "")
	type issuer = *replica.JWT
	type webhook = *replica.Webhook
	for _, tc := range []struct {
		name, want string
		change     func(issuer, webhook)
	}{
		{"an issuer without URL", "jwt[0].issuer.url", func(j issuer, _ webhook) { j.Issuer.URL = "" }},
		{"an issuer without TLS", "jwt[0].issuer.url",
			func(j issuer, _ webhook) { j.Issuer.URL = "http://accounts.example.com" }},
		{"an issuer with a password", "jwt[0].issuer.url",
			func(j issuer, _ webhook) { j.Issuer.URL = "https://u:hunter2@accounts.example.com" }},
		{"an issuer with a query", "jwt[0].issuer.url", func(j issuer, _ webhook) { j.Issuer.URL += "?a=b" }},
		{"an issuer with a fragment", "jwt[0].issuer.url", func(j issuer, _ webhook) { j.Issuer.URL += "#a" }},
		{"an issuer without a host", "jwt[0].issuer.url", func(j issuer, _ webhook) { j.Issuer.URL = "https:///a" }},
		{"an issuer with a port that is none", "jwt[0].issuer.url",
			func(j issuer, _ webhook) { j.Issuer.URL = "https://a:99999" }},
		{"an issuer that is no URL", "jwt[0].issuer.url", func(j issuer, _ webhook) { j.Issuer.URL = "https://a\nb" }},
		{"a discovery without TLS", "jwt[0].issuer.discoveryURL",
			func(j issuer, _ webhook) { j.Issuer.DiscoveryURL = "http://a" }},
		{"a discovery at the issuer", "jwt[0].issuer.discoveryURL",
			func(j issuer, _ webhook) { j.Issuer.DiscoveryURL = j.Issuer.URL + "/" }},
		{"a CA that is none", "jwt[0].issuer.certificateAuthority",
			func(j issuer, _ webhook) { j.Issuer.CertificateAuthority = "hunter2" }},
		{"a CA with its key", "jwt[0].issuer.certificateAuthority",
			func(j issuer, _ webhook) { j.Issuer.CertificateAuthority = certificate + key }},
		{"a CA that is cut", "jwt[0].issuer.certificateAuthority", func(j issuer, _ webhook) {
			j.Issuer.CertificateAuthority = certificate[:60] + certificate[124:]
		}},
		{"no audience", "jwt[0].issuer.audiences", func(j issuer, _ webhook) { j.Issuer.Audiences = nil }},
		{"an empty audience", "jwt[0].issuer.audiences[1]",
			func(j issuer, _ webhook) { j.Issuer.Audiences = []string{"a", ""} }},
		{"an audience twice", "jwt[0].issuer.audiences[1]",
			func(j issuer, _ webhook) { j.Issuer.Audiences = []string{"a", "a"} }},
		{"two audiences without a policy", "jwt[0].issuer.audienceMatchPolicy",
			func(j issuer, _ webhook) { j.Issuer.AudienceMatchPolicy = "" }},
		{"another policy", "jwt[0].issuer.audienceMatchPolicy", func(j issuer, _ webhook) {
			j.Issuer.Audiences, j.Issuer.AudienceMatchPolicy = []string{"a"}, "MatchAll"
		}},
		{"a claim rule of both", "jwt[0].claimValidationRules[0]",
			func(j issuer, _ webhook) { j.ClaimValidationRules[0].Expression = "true" }},
		{"a claim rule of nothing", "jwt[0].claimValidationRules[0]",
			func(j issuer, _ webhook) { j.ClaimValidationRules[0].Claim = "" }},
		{"a message beside a claim", "jwt[0].claimValidationRules[0].message",
			func(j issuer, _ webhook) { j.ClaimValidationRules[0].Message = "a" }},
		{"a claim twice", "jwt[0].claimValidationRules[2].claim", func(j issuer, _ webhook) {
			j.ClaimValidationRules = append(j.ClaimValidationRules, j.ClaimValidationRules[0])
		}},
		{"a value beside an expression", "jwt[0].claimValidationRules[1].requiredValue",
			func(j issuer, _ webhook) { j.ClaimValidationRules[1].RequiredValue = "a" }},
		{"an expression of blanks", "jwt[0].claimValidationRules[1].expression",
			func(j issuer, _ webhook) { j.ClaimValidationRules[1].Expression = " \t" }},
		{"a claim's expression twice", "jwt[0].claimValidationRules[2].expression", func(j issuer, _ webhook) {
			j.ClaimValidationRules = append(j.ClaimValidationRules, j.ClaimValidationRules[1])
		}},
		{"no name", "jwt[0].claimMappings.username",
			func(j issuer, _ webhook) { j.ClaimMappings.Username = replica.PrefixedClaim{} }},
		{"a name of both", "jwt[0].claimMappings.username",
			func(j issuer, _ webhook) { j.ClaimMappings.Username.Claim = "sub" }},
		{"a prefix of nothing", "jwt[0].claimMappings.username",
			func(j issuer, _ webhook) { j.ClaimMappings.Username = replica.PrefixedClaim{Prefix: new("a")} }},
		{"a prefix beside an expression", "jwt[0].claimMappings.username.prefix",
			func(j issuer, _ webhook) { j.ClaimMappings.Username.Prefix = new("a") }},
		{"an expression of blanks for a name", "jwt[0].claimMappings.username.expression",
			func(j issuer, _ webhook) { j.ClaimMappings.Username.Expression = " " }},
		{"a claim without a prefix", "jwt[0].claimMappings.username.prefix", func(j issuer, _ webhook) {
			j.ClaimMappings.Username = replica.PrefixedClaim{Claim: "sub"}
		}},
		{"groups without a prefix", "jwt[0].claimMappings.groups.prefix",
			func(j issuer, _ webhook) { j.ClaimMappings.Groups.Prefix = nil }},
		{"groups of both", "jwt[0].claimMappings.groups",
			func(j issuer, _ webhook) { j.ClaimMappings.Groups.Expression = "claims.groups" }},
		{"a uid of both", "jwt[0].claimMappings.uid",
			func(j issuer, _ webhook) { j.ClaimMappings.UID.Expression = "claims.sub" }},
		{"a uid of blanks", "jwt[0].claimMappings.uid.expression",
			func(j issuer, _ webhook) { j.ClaimMappings.UID = replica.Claim{Expression: " "} }},
		{"an extra without a domain", "jwt[0].claimMappings.extra[0].key",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].Key = "department" }},
		{"an extra without a key", "jwt[0].claimMappings.extra[0].key",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].Key = "" }},
		{"an extra in capitals", "jwt[0].claimMappings.extra[0].key",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].Key = "example.com/Department" }},
		{"an extra of Kubernetes' own", "jwt[0].claimMappings.extra[0].key",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].Key = "a.k8s.io/b" }},
		{"an extra of Kubernetes' other own", "jwt[0].claimMappings.extra[0].key",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].Key = "kubernetes.io/b" }},
		{"an extra twice", "jwt[0].claimMappings.extra[1].key", func(j issuer, _ webhook) {
			j.ClaimMappings.Extra = append(j.ClaimMappings.Extra, j.ClaimMappings.Extra[0])
		}},
		{"an extra of nothing", "jwt[0].claimMappings.extra[0].valueExpression",
			func(j issuer, _ webhook) { j.ClaimMappings.Extra[0].ValueExpression = "" }},
		{"a user rule of nothing", "jwt[0].userValidationRules[0].expression",
			func(j issuer, _ webhook) { j.UserValidationRules[0].Expression = "" }},
		{"a user rule twice", "jwt[0].userValidationRules[1].expression", func(j issuer, _ webhook) {
			j.UserValidationRules = append(j.UserValidationRules, j.UserValidationRules[0])
		}},

		{"a webhook without a name", "authorization.webhooks[0].name", func(_ issuer, w webhook) { w.Name = "" }},
		{"a webhook whose name is two", "authorization.webhooks[0].name", func(_ issuer, w webhook) { w.Name = "a.b" }},
		{"a webhook with another's name", "authorization.webhooks[1].name",
			func(_ issuer, w webhook) { w.Name = "second" }},
		{"a webhook that is called RBAC", "authorization.webhooks[0].name",
			func(_ issuer, w webhook) { w.Name = "rbac" }},
		{"a webhook without TLS", "authorization.webhooks[0].server",
			func(_ issuer, w webhook) { w.Server = "http://authz.example.com" }},
		{"a webhook with a CA that is none", "authorization.webhooks[0].certificateAuthority",
			func(_ issuer, w webhook) { w.CertificateAuthority = "hunter2" }},
		{"a token in the document", "authorization.webhooks[0].tokenFile",
			func(_ issuer, w webhook) { w.TokenFile = "hunter2" }},
		{"a certificate of a relative file", "authorization.webhooks[0].clientCertificateFile",
			func(_ issuer, w webhook) { w.ClientCertificateFile = "a.crt" }},
		{"a key of a relative file", "authorization.webhooks[0].clientKeyFile",
			func(_ issuer, w webhook) { w.ClientKeyFile = "a.key" }},
		{"a key in the document", "authorization.webhooks[0].clientKeyFile",
			func(_ issuer, w webhook) { w.ClientKeyFile = key }},
		{"a certificate without its key", "authorization.webhooks[0]",
			func(_ issuer, w webhook) { w.ClientKeyFile = "" }},
		{"a key without its certificate", "authorization.webhooks[0]",
			func(_ issuer, w webhook) { w.ClientCertificateFile = "" }},
		{"another version", "authorization.webhooks[0].subjectAccessReviewVersion",
			func(_ issuer, w webhook) { w.SubjectAccessReviewVersion = "v2" }},
		{"no failure policy", "authorization.webhooks[0].failurePolicy",
			func(_ issuer, w webhook) { w.FailurePolicy = "" }},
		{"a failure that allows", "authorization.webhooks[0].failurePolicy",
			func(_ issuer, w webhook) { w.FailurePolicy = "Allow" }},
		{"a timeout above 30s", "authorization.webhooks[0].timeout",
			func(_ issuer, w webhook) { w.Timeout = replica.Duration(31 * time.Second) }},
		{"a timeout below nothing", "authorization.webhooks[0].timeout", func(_ issuer, w webhook) { w.Timeout = -1 }},
		{"a yes that ends before it begins", "authorization.webhooks[0].authorizedTTL",
			func(_ issuer, w webhook) { w.AuthorizedTTL = -1 }},
		{"a no that ends before it begins", "authorization.webhooks[0].unauthorizedTTL",
			func(_ issuer, w webhook) { w.UnauthorizedTTL = -1 }},
		{"a condition of nothing", "authorization.webhooks[0].matchConditions[0].expression",
			func(_ issuer, w webhook) { w.MatchConditions[0].Expression = "" }},
		{"a condition twice", "authorization.webhooks[0].matchConditions[1].expression", func(_ issuer, w webhook) {
			w.MatchConditions = append(w.MatchConditions, w.MatchConditions[0])
		}},
		{"65 conditions", "authorization.webhooks[0].matchConditions", func(_ issuer, w webhook) {
			w.MatchConditions = nil
			for i := range many {
				w.MatchConditions = append(w.MatchConditions,
					replica.MatchCondition{Expression: fmt.Sprintf("%d > 0", i)})
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := withAccess(t)
			tc.change(&c.JWT[0], &c.Authorization.Webhooks[0])
			err := c.Validate()
			var faults replica.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v", err)
			}
			for _, f := range faults {
				if f.Field != tc.want || f.Allowed == "" {
					t.Errorf("unexpected: %s (field %q, want %q)", f, f.Field, tc.want)
				}
			}
			if said := err.Error(); strings.Contains(said, "hunter2") || strings.Contains(said, "PRIVATE KEY") {
				t.Errorf("it shows what it refuses: %s", said)
			}
		})
	}
}

// What is said where it is not exactly one of two tells which of the two mistakes it is.
func TestNeitherAndBothAreTwoMistakes(t *testing.T) {
	c := withAccess(t)
	c.JWT[0].ClaimValidationRules = []replica.ClaimRule{{}, {Claim: "a", Expression: "true"}}
	err := fmt.Sprint(c.Validate())
	for _, part := range []string{"Rules[0]: found nothing;", `Rules[1]: found "claim and expression";`} {
		if !strings.Contains(err, part) {
			t.Errorf("%s is not in %s", part, err)
		}
	}
}

func TestTwoIssuersAreTwo(t *testing.T) {
	c := withAccess(t)
	c.JWT[1].Issuer.URL, c.JWT[1].Issuer.DiscoveryURL = c.JWT[0].Issuer.URL, c.JWT[0].Issuer.DiscoveryURL
	err := fmt.Sprint(c.Validate())
	if !strings.Contains(err, "jwt[1].issuer.url: ") || !strings.Contains(err, "jwt[1].issuer.discoveryURL: ") ||
		strings.Contains(err, "jwt[0]") {
		t.Error(err)
	}
	c.JWT = c.JWT[:1]
	for i := range 63 {
		j := c.JWT[0]
		j.Issuer.URL, j.Issuer.DiscoveryURL = fmt.Sprintf("https://%d.example.com", i), ""
		c.JWT = append(c.JWT, j)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("64 issuers: %v", err)
	}
	c.JWT = append(c.JWT, c.JWT[0])
	if err := fmt.Sprint(c.Validate()); !strings.Contains(err, `jwt: found "65 issuers"; allowed: at most 64`) {
		t.Error(err)
	}
}

func TestAccessThatIsTaken(t *testing.T) {
	certificate, _ := selfSigned(t)
	for name, change := range map[string]func(*replica.JWT, *replica.Webhook){
		"a CA": func(j *replica.JWT, w *replica.Webhook) {
			j.Issuer.CertificateAuthority, w.CertificateAuthority = certificate, certificate
		},
		"two CAs": func(j *replica.JWT,
			_ *replica.Webhook) {
			j.Issuer.CertificateAuthority = certificate + certificate
		},
		"no discovery": func(j *replica.JWT, _ *replica.Webhook) { j.Issuer.DiscoveryURL = "" },
		"a policy with one audience": func(j *replica.JWT,
			_ *replica.Webhook) {
			j.Issuer.Audiences = j.Issuer.Audiences[:1]
		},
		"no groups and no uid": func(j *replica.JWT, _ *replica.Webhook) {
			j.ClaimMappings.Groups, j.ClaimMappings.UID = replica.PrefixedClaim{}, replica.Claim{}
		},
		"a domain like Kubernetes'": func(j *replica.JWT,
			_ *replica.Webhook) {
			j.ClaimMappings.Extra[0].Key = "notk8s.io/a"
		},
		"a claim without its value": func(j *replica.JWT,
			_ *replica.Webhook) {
			j.ClaimValidationRules[0].RequiredValue = ""
		},
		"the longest timeout": func(_ *replica.JWT,
			w *replica.Webhook) {
			w.Timeout = replica.Duration(30 * time.Second)
		},
		"64 conditions": func(_ *replica.JWT, w *replica.Webhook) {
			for i := range 63 {
				w.MatchConditions = append(w.MatchConditions,
					replica.MatchCondition{Expression: fmt.Sprintf("%d > 0", i)})
			}
		},
		"no credentials": func(_ *replica.JWT, w *replica.Webhook) {
			w.TokenFile, w.ClientCertificateFile, w.ClientKeyFile = "", "", ""
		},
	} {
		c := withAccess(t)
		change(&c.JWT[0], &c.Authorization.Webhooks[0])
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// selfSigned is a certificate and its key, in PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
