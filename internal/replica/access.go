package replica

// JWT is an issuer of JSON Web Tokens whose users are let in, as OpenID Connect makes them. The fields, and what they
// mean, are those of kube-apiserver's AuthenticationConfiguration (apiserver.config.k8s.io/v1). Expressions are
// CEL; only the apiserver compiles them, when it starts.
type JWT struct {
	// Issuer says whose tokens these are.
	Issuer JWTIssuer `yaml:"issuer" json:"issuer"`
	// ClaimValidationRules must all hold for a token's claims.
	ClaimValidationRules []ClaimRule `yaml:"claimValidationRules,omitempty" json:"claimValidationRules,omitempty"`
	// ClaimMappings make a user of a token's claims.
	ClaimMappings ClaimMappings `yaml:"claimMappings" json:"claimMappings"`
	// UserValidationRules must all hold for the user.
	UserValidationRules []UserRule `yaml:"userValidationRules,omitempty" json:"userValidationRules,omitempty"`
}

// JWTIssuer says whose tokens are taken.
type JWTIssuer struct {
	// URL is the tokens' claim iss: https://ADDRESS/PATH. The keys are found below it, unless discoveryURL is given.
	URL string `yaml:"url" json:"url"`
	// DiscoveryURL is the issuer's openid-configuration, where it is not below url.
	DiscoveryURL string `yaml:"discoveryURL,omitempty" json:"discoveryURL,omitempty"`
	// CertificateAuthority are the certificates, in PEM, by which the issuer's own is verified: the system's where it
	// is not given.
	CertificateAuthority string `yaml:"certificateAuthority,omitempty" json:"certificateAuthority,omitempty"`
	// Audiences are those of the tokens that are taken; one of them must be in the claim aud.
	Audiences []string `yaml:"audiences" json:"audiences"`
	// AudienceMatchPolicy is MatchAny where there are several audiences; it can be left out where there is one.
	AudienceMatchPolicy string `yaml:"audienceMatchPolicy,omitempty" json:"audienceMatchPolicy,omitempty" jsonschema:"enum=MatchAny"`
}

// ClaimRule is a claim with the value that it must have, or an expression that must be true.
type ClaimRule struct {
	// Claim must be in the token.
	Claim string `yaml:"claim,omitempty" json:"claim,omitempty"`
	// RequiredValue is what the claim must be.
	RequiredValue string `yaml:"requiredValue,omitempty" json:"requiredValue,omitempty"`
	// Expression must be true; it sees the token's claims as claims. It stands in place of claim.
	Expression string `yaml:"expression,omitempty" json:"expression,omitempty"`
	// Message is said where the expression is false.
	Message string `yaml:"message,omitempty" json:"message,omitempty"`
}

// UserRule is what must be true of a user.
type UserRule struct {
	// Expression must be true; it sees the user as user.
	Expression string `yaml:"expression" json:"expression"`
	// Message is said where the expression is false.
	Message string `yaml:"message,omitempty" json:"message,omitempty"`
}

// ClaimMappings make a user of a token's claims.
type ClaimMappings struct {
	// Username is the user's name.
	Username PrefixedClaim `yaml:"username" json:"username"`
	// Groups are the user's groups.
	Groups PrefixedClaim `yaml:"groups,omitempty" json:"groups,omitzero"`
	// UID tells two users with one name apart.
	UID Claim `yaml:"uid,omitempty" json:"uid,omitzero"`
	// Extra is what else authorizers get to know of the user.
	Extra []ExtraClaim `yaml:"extra,omitempty" json:"extra,omitempty"`
}

// PrefixedClaim is a claim and what is put before it, or an expression.
type PrefixedClaim struct {
	// Claim is the claim whose value is taken.
	Claim string `yaml:"claim,omitempty" json:"claim,omitempty"`
	// Prefix is put before the claim's value, so that it is none of the cluster's own names. It must be given with a
	// claim; "" puts nothing there.
	Prefix *string `yaml:"prefix,omitempty" json:"prefix,omitempty"`
	// Expression makes the value; it sees the token's claims as claims. It stands in place of claim and prefix.
	Expression string `yaml:"expression,omitempty" json:"expression,omitempty"`
}

// Claim is a claim or an expression.
type Claim struct {
	// Claim is the claim whose value is taken.
	Claim string `yaml:"claim,omitempty" json:"claim,omitempty"`
	// Expression makes the value; it sees the token's claims as claims. It stands in place of claim.
	Expression string `yaml:"expression,omitempty" json:"expression,omitempty"`
}

// ExtraClaim is a value that authorizers get to know of the user.
type ExtraClaim struct {
	// Key is DOMAIN/PATH in lower case, such as example.com/department.
	Key string `yaml:"key" json:"key"`
	// ValueExpression makes the value; it sees the token's claims as claims.
	ValueExpression string `yaml:"valueExpression" json:"valueExpression"`
}

// Authorization says who may do what, in addition to Node and RBAC.
type Authorization struct {
	// Webhooks are asked in this order about what neither Node nor RBAC allows. They can allow more; they cannot forbid
	// what those two allow, so that a webhook that is away or wrong locks nobody out.
	Webhooks []Webhook `yaml:"webhooks,omitempty" json:"webhooks,omitempty"`
}

// Webhook is a server that answers SubjectAccessReviews.
type Webhook struct {
	// Name is a DNS label of the webhook's own; it is in metrics and logs.
	Name string `yaml:"name" json:"name"`
	// Server is where it is asked: https://ADDRESS/PATH.
	Server string `yaml:"server" json:"server"`
	// CertificateAuthority are the certificates, in PEM, by which the server's own is verified: the system's where it
	// is not given.
	CertificateAuthority string `yaml:"certificateAuthority,omitempty" json:"certificateAuthority,omitempty"`
	// TokenFile is a file of the replica with the bearer token that the apiserver shows. It is read again when it
	// changes.
	TokenFile string `yaml:"tokenFile,omitempty" json:"tokenFile,omitempty"`
	// ClientCertificateFile is a file of the replica with the certificate that the apiserver shows, in PEM.
	ClientCertificateFile string `yaml:"clientCertificateFile,omitempty" json:"clientCertificateFile,omitempty"`
	// ClientKeyFile is a file of the replica with that certificate's key, in PEM.
	ClientKeyFile string `yaml:"clientKeyFile,omitempty" json:"clientKeyFile,omitempty"`
	// SubjectAccessReviewVersion is that of what is sent: v1 (the default) or v1beta1.
	SubjectAccessReviewVersion string `yaml:"subjectAccessReviewVersion,omitempty" json:"subjectAccessReviewVersion,omitempty" jsonschema:"enum=v1,enum=v1beta1"`
	// FailurePolicy is what holds while it cannot be asked: NoOpinion (the next is asked) or Deny. It must be chosen.
	FailurePolicy string `yaml:"failurePolicy" json:"failurePolicy" jsonschema:"enum=NoOpinion,enum=Deny"`
	// Timeout is how long an answer is waited for: 3s where it is not given, 30s at most.
	Timeout Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	// AuthorizedTTL is how long a yes is remembered: 5m where it is not given.
	AuthorizedTTL Duration `yaml:"authorizedTTL,omitempty" json:"authorizedTTL,omitempty"`
	// UnauthorizedTTL is how long a no is remembered: 30s where it is not given.
	UnauthorizedTTL Duration `yaml:"unauthorizedTTL,omitempty" json:"unauthorizedTTL,omitempty"`
	// MatchConditions must all be true, or the webhook is not asked.
	MatchConditions []MatchCondition `yaml:"matchConditions,omitempty" json:"matchConditions,omitempty"`
}

// MatchCondition is what must be true of a request for a webhook to be asked.
type MatchCondition struct {
	// Expression sees a SubjectAccessReview's spec (v1) as request.
	Expression string `yaml:"expression" json:"expression"`
}
