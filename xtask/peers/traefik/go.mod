// Compiles Traefik from its module: see xtask/src/deps/peers.rs.
module tollgate.test/traefik

go 1.24

// Replacements apply to the main module only, so those of Traefik are repeated here.
replace (
	// Traefik's own fork is this version with one more method, in stale.go.
	github.com/abbot/go-http-auth => ./go-http-auth
	github.com/gorilla/mux => github.com/containous/mux v0.0.0-20250523120546-41b6ec3aed59
	github.com/mailgun/minheap => github.com/containous/minheap v0.0.0-20190809180810-6e71eb837595
)
