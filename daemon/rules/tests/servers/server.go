// Reports which ways to read a request's path lead to /login. Prints its port; ends with its input.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Login", "mux")
	})
	mux.HandleFunc("/login/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Login", "mux")
	})
	handler := func(w http.ResponseWriter, r *http.Request) {
		readings := map[string]string{
			"path":    r.URL.Path,
			"escaped": r.URL.EscapedPath(),
			"clean":   path.Clean("/" + r.URL.Path),
			"raw":     strings.SplitN(r.RequestURI, "?", 2)[0],
		}
		var found []string
		for name, read := range readings {
			if strings.TrimSuffix(read, "/") == "/login" {
				found = append(found, name)
			}
		}
		mux.ServeHTTP(w, r)
		if name := w.Header().Get("X-Login"); name != "" {
			found = append(found, name)
		}
		fmt.Fprint(w, strings.Join(found, " "))
	}
	go http.Serve(listener, http.HandlerFunc(handler))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}
