import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { WEBHOOK_SETTINGS, type WebhookConfig } from '../process/config/config.js';
import { InformerRegistry } from '../kube/informers/informers.js';
import { Metrics } from '../process/metrics.js';
import { defaultConfig } from '../test/default-config.js';
import { createWebhook } from './main.js';

describe('the webhook', () => {
  for (const publishCapacity of [true, false]) {
    it(`watches ${publishCapacity ? 'pools' : 'no pools'} while PublishCapacity is ${publishCapacity ? 'on' : 'off'}`, () => {
      const config = defaultConfig<WebhookConfig>(WEBHOOK_SETTINGS);
      const metrics = new Metrics();
      const shared = { client: {} as never, clock: systemClock, random: Math.random, log: silentLogger };
      const informers = new InformerRegistry({ ...shared, metrics: metrics.kube });
      const featureGates = { ...config.featureGates, publishCapacity };
      createWebhook({ ...shared, informers, metrics }, { ...config, featureGates });
      const { missing } = informers;
      expect(missing).to.include.members(['ipamclaims', 'network-attachment-definitions']);
      expect(missing.includes('addresspools')).to.equal(publishCapacity);
    });
  }
});
