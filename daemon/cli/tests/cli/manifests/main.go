// Decodes the documents of Kubernetes manifests strictly: an unknown field, a duplicate key or a
// value of another type is an error.
package main

import (
	"bytes"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, autoscaling.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	failed := false
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			_, kind, err := decoder.Decode(document, nil, nil)
			if err != nil {
				fmt.Println(file, err)
				failed = true
				continue
			}
			fmt.Println(kind.Kind)
		}
	}
	if failed {
		os.Exit(1)
	}
}
