package controlplane

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// reviewed is a webhook with everything that one can have.
func reviewed() replica.Webhook {
	return replica.Webhook{
		Name: "example", Server: "https://authz.example.com/review",
		CertificateAuthority: "-----BEGIN CERTIFICATE-----\n",
		TokenFile:            "/etc/authz.token", ClientCertificateFile: "/etc/authz.crt",
		ClientKeyFile:   "/etc/authz.key",
		FailurePolicy:   "Deny",
		MatchConditions: []replica.MatchCondition{{Expression: "has(request.resourceAttributes)"}},
	}
}

// trusted is an issuer with everything that one can have.
func trusted() replica.JWT {
	return replica.JWT{
		Issuer: replica.JWTIssuer{URL: "https://accounts.example.com",
			DiscoveryURL:         "https://keys.example.com/configuration",
			CertificateAuthority: "-----BEGIN CERTIFICATE-----\n", Audiences: []string{"a", "b"},
			AudienceMatchPolicy: "MatchAny"},
		ClaimValidationRules: []replica.ClaimRule{
			{Claim: "hd", RequiredValue: "example.com"}, {Expression: "claims.email_verified == true", Message: "no"},
		},
		ClaimMappings: replica.ClaimMappings{
			Username: replica.PrefixedClaim{Claim: "sub", Prefix: new("")},
			Groups:   replica.PrefixedClaim{Expression: "claims.groups"},
			UID:      replica.Claim{Claim: "sub"},
			Extra:    []replica.ExtraClaim{{Key: "example.com/a", ValueExpression: "claims.a"}},
		},
		UserValidationRules: []replica.UserRule{{Expression: "!user.username.startsWith('system:')", Message: "no"}},
	}
}

// TestAccessFiles compares whole files: who is let in, and who may do what, is to be seen in review.
func TestAccessFiles(t *testing.T) {
	with := representative()
	with.Cluster.JWT = []replica.JWT{trusted(), {
		Issuer:        replica.JWTIssuer{URL: "https://other.example.com", Audiences: []string{"a"}},
		ClaimMappings: replica.ClaimMappings{Username: replica.PrefixedClaim{Expression: "claims.sub"}},
	}}
	with.Cluster.Authorization.Webhooks = []replica.Webhook{
		reviewed(), {Name: "second", Server: "https://10.0.0.1", FailurePolicy: "NoOpinion"},
	}
	with.Cluster.SetDefaults()
	for name, in := range map[string]Input{"access": with, "noaccess": representative()} {
		_, files, err := Components(in)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, f := range files {
			if strings.Contains(f.Path, "auth") {
				fmt.Fprintf(&b, "== %s\n%s", f.Path, f.Data)
			}
		}
		golden(t, name+".golden", b.String())
	}
	if _, files, _ := Components(representative()); strings.Contains(string(files[0].Data), "jwt") {
		t.Error("one replica's issuers are in another's file")
	}
}

func TestTheClustersOwnIssuerIsNoOtherOne(t *testing.T) {
	c := representative().Cluster
	c.JWT = []replica.JWT{trusted(), trusted()}
	c.JWT[1].Issuer.URL = "https://kubernetes.default.svc.cluster.local"
	if err := fmt.Sprint(Validate(c)); !strings.HasPrefix(err, "jwt[1].issuer.url: ") || strings.Contains(err, "\n") {
		t.Error(err)
	}
	const again = "--service_account_issuer=https://accounts.example.com"
	c.Components[replica.APIServer] = replica.Component{Enabled: new(true),
		ExtraArgs: []string{"--service-account-issuer=https://a.example.com", again, again}}
	if err := fmt.Sprint(Validate(c)); !strings.HasPrefix(err, "jwt[0].issuer.url: ") || strings.Contains(err, "\n") {
		t.Error(err)
	}
}
