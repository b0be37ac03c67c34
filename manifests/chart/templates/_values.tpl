{{/* Applies the values to the objects in .objects. Like _objects.tpl, these functions change the objects that they get. */}}

{{- define "holdfast.imageName" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- end -}}

{{- define "holdfast.image" -}}
{{- $image := .Values.image -}}
{{- include "holdfast.imageName" . }}
{{- if $image.tag }}:{{ $image.tag }}{{ else if not $image.digest }}:{{ .Chart.AppVersion }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* The values of a process; all processes have the fields of the schema's "process". */}}
{{- define "holdfast.values" -}}
{{- $root := .root -}}
{{- $processes := dict "holdfast-controller" .root.Values.controller "holdfast-webhook" .root.Values.webhook "holdfast-ipam" .root.Values.ipam -}}
{{- $_ := set $processes "holdfast-capacity" .root.Values.capacity -}}
{{- $_ := set $processes "holdfast-guest" .root.Values.guest -}}
{{- $_ := set $processes "holdfast-agent" .root.Values.agent -}}
{{- /* It runs where the agents run, and has no flags. */ -}}
{{- $_ := set $processes "holdfast-agent-guard" (merge (dict "resources" dict "extraArgs" list) (omit .root.Values.agent "resources" "extraArgs")) -}}
{{- $_ := set $processes "holdfast-all" .root.Values.allInOne -}}
{{- range $object := .objects -}}
  {{- $name := .metadata.name -}}
  {{- if has .kind (list "Deployment" "DaemonSet") -}}
    {{- template "holdfast.workload" dict "root" $root "object" . "values" (get $processes $name) -}}
  {{- else if and (eq .kind "ServiceAccount") (hasKey $processes $name) -}}
    {{- with (get $processes $name).serviceAccountAnnotations -}}
      {{- template "holdfast.merge" dict "into" $object.metadata "from" (dict "annotations" .) -}}
    {{- end -}}
  {{- else if eq .kind "NetworkPolicy" -}}
    {{- template "holdfast.networkPolicy" dict "values" $root.Values.networkPolicy "object" . -}}
  {{- else if and (eq .kind "ConfigMap") (eq $name "holdfast-policies") -}}
    {{- $data := .data -}}
    {{- with $root.Values.kubevirtNamespace }}{{ $_ := set $data "kubevirtNamespace" . }}{{ end -}}
    {{- with $root.Values.claimWriters }}{{ $_ := set $data "claimWriters" (join "\n" .) }}{{ end -}}
    {{- with $root.Values.statusWriters }}{{ $_ := set $data "statusWriters" (join "\n" .) }}{{ end -}}
    {{- $image := $root.Values.image -}}
    {{- if or $image.registry (ne $image.repository "holdfast") }}{{ $_ := set $data "responderImages" (include "holdfast.imageName" $root) }}{{ end -}}
    {{- with include "holdfast.responderExtras" $root.Values.guest.responder }}{{ $_ := set $data "responderExtras" . }}{{ end -}}
  {{- else if eq .kind "Certificate" -}}
    {{- $issuer := $root.Values.certManager.issuerRef -}}
    {{- if $issuer }}{{ $_ := set .spec "issuerRef" $issuer }}{{ end -}}
  {{- else if has .kind (list "ServiceMonitor" "PodMonitor" "PrometheusRule") -}}
    {{- template "holdfast.merge" dict "into" .metadata "from" (dict "labels" $root.Values.prometheusOperator.labels) -}}
    {{- $secret := $root.Values.prometheusOperator.tokenSecret -}}
    {{- if $secret -}}
      {{- range .spec.endpoints -}}
        {{- $_ := unset . "bearerTokenFile" -}}
        {{- $_ := set . "authorization" (dict "credentials" $secret) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the values leave out an object that no component leaves out: "yes" or nothing. */}}
{{- define "holdfast.isLeftOut" -}}
{{- $values := .root.Values -}}
{{- $name := .object.metadata.name -}}
{{- $isCA := or (eq .object.kind "Issuer") (and (eq .object.kind "Certificate") (eq $name "holdfast-ca")) -}}
{{- /* The namespace of the release exists: Helm never manages it. */ -}}
{{- if and (eq .object.kind "Namespace") (eq $name .root.Release.Namespace) }}yes
{{- else if and (eq .object.kind "NetworkPolicy") (not $values.networkPolicy.enabled) }}yes
{{- else if and $isCA $values.certManager.issuerRef }}yes
{{- end -}}
{{- end -}}

{{- define "holdfast.workload" -}}
{{- $values := .values -}}
{{- $root := .root -}}
{{- $pod := .object.spec.template.spec -}}
{{- $name := .object.metadata.name -}}
{{- if not (kindIs "invalid" $values.replicas) }}{{ $_ := set .object.spec "replicas" $values.replicas }}{{ end -}}
{{- range $each := concat $pod.containers (default list $pod.initContainers) -}}
  {{- $_ := set $each "image" (include "holdfast.image" $root) -}}
  {{- with $root.Values.image.pullPolicy }}{{ $_ := set $each "imagePullPolicy" . }}{{ end -}}
  {{- template "holdfast.merge" dict "into" $each "from" (dict "resources" $values.resources) -}}
{{- end -}}
{{- $container := first $pod.containers -}}
{{- $args := list -}}
{{- with $root.Values.logLevel }}{{ $args = append $args (printf "--log-level=%s" .) }}{{ end -}}
{{- $gates := list -}}
{{- range $gate, $enabled := $root.Values.featureGates }}{{ $gates = append $gates (printf "%s=%t" $gate $enabled) }}{{ end -}}
{{- /* The flag overrides the variable of the component. */ -}}
{{- if and $gates $root.Values.primaryNetworks.enabled }}{{ $gates = append $gates "PrimaryUserDefinedNetwork=true" }}{{ end -}}
{{- with $gates }}{{ $args = append $args (printf "--feature-gates=%s" (join "," .)) }}{{ end -}}
{{- if has $name (list "holdfast-ipam" "holdfast-all") -}}
  {{- with $root.Values.ipam.globalNamespaces }}{{ $args = append $args (printf "--global-namespaces=%s" (join "," .)) }}{{ end -}}
  {{- with $root.Values.ipam.capacityNamespaces }}{{ $args = append $args (printf "--capacity-namespaces=%s" (join "," .)) }}{{ end -}}
  {{- with $root.Values.ipam.auditLog }}{{ $args = append $args (printf "--audit-log=%s" .) }}{{ end -}}
  {{- with $root.Values.ipam.auditVolume -}}
    {{- $_ := set $pod "volumes" (append (default list $pod.volumes) (merge (dict "name" "audit") .)) -}}
    {{- $_ := set $container "volumeMounts" (append (default list $container.volumeMounts) (dict "name" "audit" "mountPath" (dir $root.Values.ipam.auditLog))) -}}
  {{- end -}}
  {{- with dig "limits" "memory" "" $values.resources -}}
    {{- template "holdfast.merge" dict "into" $container "from" (dict "env" (list (dict "name" "NODE_OPTIONS" "value" (include "holdfast.heap" .)))) -}}
  {{- end -}}
{{- end -}}
{{- if has $name (list "holdfast-guest" "holdfast-all") -}}
  {{- $template := dict -}}
  {{- range $field, $value := $root.Values.guest.responder }}{{ if $value }}{{ $_ := set $template $field $value }}{{ end }}{{ end -}}
  {{- with $template -}}
    {{- template "holdfast.merge" dict "into" $container "from" (dict "env" (list (dict "name" "HOLDFAST_RESPONDER_TEMPLATE" "value" (toJson .)))) -}}
  {{- end -}}
{{- end -}}
{{- if eq $name "holdfast-agent" }}{{ template "holdfast.agent" dict "pod" .object.spec.template "values" $values }}{{ end -}}
{{- if eq $name "holdfast-agent-guard" }}{{ $args = list }}{{ end -}}
{{- $_ := set $container "args" (concat $container.args $args $values.extraArgs) -}}
{{- with $values.extraEnv }}{{ template "holdfast.merge" dict "into" $container "from" (dict "env" .) }}{{ end -}}
{{- with $values.updateStrategy }}{{ $_ := set $.object.spec (ternary "updateStrategy" "strategy" (eq $.object.kind "DaemonSet")) . }}{{ end -}}
{{- with $values.topologySpreadConstraints }}{{ $_ := set $pod "topologySpreadConstraints" . }}{{ end -}}
{{- template "holdfast.merge" dict "into" $pod "from" (dict "nodeSelector" $values.nodeSelector) -}}
{{- with $values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end -}}
{{- with $values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- with $values.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end -}}
{{- with $root.Values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- $metadata := dict "labels" $values.podLabels -}}
{{- with $values.podAnnotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
{{- template "holdfast.merge" dict "into" .object.spec.template.metadata "from" $metadata -}}
{{- end -}}

{{/* What the policy must allow the pods of responders to have: the names of annotations, labels and resources in the values, one per line. */}}
{{- define "holdfast.responderExtras" -}}
{{- $maps := list .podAnnotations .podLabels -}}
{{- range list .resources .packetsResources }}{{ $maps = concat $maps (list (default dict .requests) (default dict .limits)) }}{{ end -}}
{{- $names := list -}}
{{- range $maps }}{{ $names = concat $names (keys .) }}{{ end -}}
{{- join "\n" (sortAlpha (uniq $names)) -}}
{{- end -}}

{{/* Node.js must collect garbage before the kernel kills the process: three quarters of the memory limit. */}}
{{- define "holdfast.heap" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^[0-9]+[MG]i$" $text) }}{{ fail (printf "resources.limits.memory of ipam and allInOne must be a whole number of Mi or Gi, such as 2Gi, and is %s" $text) }}{{ end -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- if hasSuffix "Gi" $text }}{{ $number = mul $number 1024 }}{{ end -}}
--max-old-space-size={{ div (mul $number 3) 4 }}
{{- end -}}

{{- define "holdfast.agent" -}}
{{- with .values.cniBinDir -}}
  {{- $metadata := dict "annotations" (dict "ipam.holdfast.dev/cni-bin-dir" .) -}}
  {{- $volumes := list (dict "name" "cni-bin" "hostPath" (dict "path" .)) -}}
  {{- template "holdfast.merge" dict "into" $.pod "from" (dict "metadata" $metadata "spec" (dict "volumes" $volumes)) -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.networkPolicy" -}}
{{- $ports := list -}}
{{- range .values.apiServerPorts }}{{ $ports = append $ports (dict "port" (int .)) }}{{ end -}}
{{- with $ports }}{{ $_ := set $.object.spec "egress" (list (dict "ports" .)) }}{{ end -}}
{{- $blocks := list -}}
{{- range .values.apiServerCIDRs }}{{ $blocks = append $blocks (dict "ipBlock" (dict "cidr" .)) }}{{ end -}}
{{- if $blocks -}}
  {{- range .object.spec.ingress -}}
    {{- if not (hasKey . "from") }}{{ $_ := set . "from" $blocks }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- end -}}
