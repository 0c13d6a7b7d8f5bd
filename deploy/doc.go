// Package deploy holds what agentd is run and watched with in production: alerts and a dashboard,
// a systemd unit, a container, and manifests for Kubernetes. README.md explains them. There is no
// code but the tests, which hold each file against the program that reads it; they are a module of
// their own, so that the types of Kubernetes are no dependency of agentd.
package deploy
