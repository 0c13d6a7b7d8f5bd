package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// decoder reads objects of Kubernetes as its API server does with fieldValidation=Strict: an
// unknown or doubled field is an error.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// objects returns the objects of a file.
func objects(t *testing.T, path string) (all []runtime.Object) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, document := range bytes.Split(data, []byte("\n---\n")) {
		object, _, err := decoder(t).Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s, document %d: %v", path, i+1, err)
		}
		all = append(all, object)
	}
	return all
}

// podOf returns what an object runs, or nil.
func podOf(o runtime.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	}
	return nil
}

// Every manifest is one that the API of Kubernetes takes, and its pods are what the standard
// "restricted" lets run, on a read-only root.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("manifests %q, %v", files, err)
	}
	for _, path := range files {
		pods := 0
		for _, o := range objects(t, path) {
			pod := podOf(o)
			if pod == nil {
				continue
			}
			pods++
			checkPod(t, path, pod)
		}
		if pods != 1 {
			t.Errorf("%s has %d pods", path, pods)
		}
	}
}

func checkPod(t *testing.T, path string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	s := pod.Spec.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: the pod may run as root, or without seccomp", path)
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("%s: the pod has a token of the cluster, which skills could use", path)
	}
	mounted := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		mounted[v.Name] = true
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		s := c.SecurityContext
		switch {
		case s == nil, s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem,
			s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL":
			t.Errorf("%s: the container %s has more rights than it needs", path, c.Name)
		}
		for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if p == nil || p.HTTPGet == nil {
				continue
			}
			if !map[string]bool{"/startupz": true, "/readyz": true, "/livez": true}[p.HTTPGet.Path] {
				t.Errorf("%s: the container %s is asked for %s", path, c.Name, p.HTTPGet.Path)
			}
			const looks = 5 // seconds, for which /livez waits until it says no
			if p == c.LivenessProbe && p.TimeoutSeconds <= looks {
				t.Errorf("%s: the container %s is restarted where /livez takes %d s", path, c.Name, p.TimeoutSeconds)
			}
		}
		for _, m := range c.VolumeMounts {
			if !mounted[m.Name] && m.Name != "state" && m.Name != "data" { // claims of stateful sets
				t.Errorf("%s: the container %s mounts %s, which is no volume", path, c.Name, m.Name)
			}
		}
	}
}
