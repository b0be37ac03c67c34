import { expect } from 'chai';
import fc from 'fast-check';
import { messageOf } from '../../kube/errors.js';
import { parseResponderTemplate } from './responder-template.js';

describe('the template of responders', () => {
  it('has all fields of the chart', () => {
    const template = {
      resources: { requests: { cpu: '50m' }, limits: { memory: '1Gi', 'example.com/device': 1 } },
      packetsResources: { limits: { memory: '256Mi' } },
      tolerations: [{ key: 'network', operator: 'Equal', value: 'x', effect: 'NoExecute', tolerationSeconds: 30 }],
      nodeSelector: { 'example.com/network': 'blue' },
      priorityClassName: 'network',
      podAnnotations: { 'prometheus.io/scrape': 'true' },
      podLabels: { team: 'network' },
    };
    expect(parseResponderTemplate(JSON.stringify(template))).to.deep.equal(template);
    expect(parseResponderTemplate('{}')).to.deep.equal({});
  });

  const refused: [string, unknown, string][] = [
    [
      'an unknown field',
      { hostNetwork: true },
      'the template has no field "hostNetwork", only resources, packetsResources, ',
    ],
    ['a list', [], 'the template must be an object, and is a list'],
    ['an unknown kind of resources', { resources: { claims: [] } }, 'resources has no field "claims"'],
    ['a quantity that is a list', { resources: { limits: { cpu: [] } } }, 'resources.limits.cpu must be a quantity'],
    ['a single toleration', { tolerations: { key: 'a' } }, 'tolerations must be a list, and is an object'],
    ['a wrong toleration', { tolerations: [{}, { keys: 'a' }] }, 'tolerations[1] has no field "keys"'],
    ['a half second', { tolerations: [{ tolerationSeconds: 0.5 }] }, 'tolerationSeconds must be a whole number'],
    ['a selector that is no text', { nodeSelector: { a: true } }, 'nodeSelector.a must be a string, and is true'],
    [
      'the networks of the pods',
      { podAnnotations: { 'k8s.v1.cni.cncf.io/networks': 'vms/blue' } },
      'podAnnotations must not have k8s.v1.cni.cncf.io/networks, which Holdfast sets',
    ],
    ['a label by which Holdfast finds them', { podLabels: { 'app.kubernetes.io/component': 'x' } }, 'must not have'],
    ['a field of every object', { podLabels: JSON.parse('{"__proto__": {}}') as object }, 'podLabels.__proto__'],
  ];
  for (const [name, value, message] of refused) {
    it(`refuses ${name} by name`, () => {
      const parse = () => parseResponderTemplate(JSON.stringify(value));
      expect(parse).to.throw(TypeError).with.property('message').that.includes(message);
    });
  }

  it('refuses text that is no JSON with an example', () => {
    expect(() => parseResponderTemplate('priorityClassName: network')).to.throw('{"priorityClassName": "network"}');
  });

  it('throws nothing but TypeErrors with a message', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        try {
          parseResponderTemplate(text);
        } catch (error) {
          expect(error).to.be.instanceOf(TypeError);
          expect(messageOf(error)).not.to.equal('');
        }
      }),
    );
  });
});
