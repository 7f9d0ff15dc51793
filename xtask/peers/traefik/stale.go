package auth

import "net/http"

// RequireAuthStale is the method that Traefik's fork adds for digest authentication, which the
// tests do not use.
func (a *DigestAuth) RequireAuthStale(w http.ResponseWriter, r *http.Request) {
	a.RequireAuth(w, r)
}
