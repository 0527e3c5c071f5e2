"""The paper's logistic bandit and its four policies once more: slow, in NumPy and float64, with no code of explorax.

Fixed arms, Bernoulli rewards.  A policy keeps a count N_x and a reward sum Y_x of each arm,

    scores(noise) -> (K,)      what it maximizes, given the standard normals of this decision
    update(arm, reward)        the only write

so that the noise, the arms pulled and the rewards can all come from outside.

    θ̄ = argmin Σ_x N_x log(1 + exp(xᵀθ)) − Y_x xᵀθ + ½ λ‖θ‖²,    H = Σ_x N_x μ̇(xᵀθ̄) x xᵀ + λI,    G = Σ_x N_x x xᵀ

    TSL       xᵀθ̃,  θ̃ = θ̄ + a M ε,  M Mᵀ = H⁻¹                       d normals
    FPL       xᵀθ̃,  θ̃ the estimate for the tilt S = a R ε,  R Rᵀ = G    d normals (or as many as R has columns)
              xᵀθ̃,  θ̃ the estimate on sums Y_x + a √N_x ε_x             K normals
    UCBGLM    xᵀθ̄ + α ‖x‖_{G⁻¹}
    GLMUCB    μ(xᵀθ̄) + ρ ‖x‖_{G⁻¹}

G gets 10⁻⁶ I before it is inverted.  Any roots M and R give the same law; they can be passed in, and are then checked.
"""

import numpy as np

GRAM_RIDGE = 1e-6


def sigmoid(score):
    return np.exp(-np.logaddexp(0, -score))


def loss(theta, arms, counts, sums, ridge, tilt):
    scores = arms @ theta
    return counts @ np.logaddexp(0, scores) - sums @ scores + ridge / 2 * theta @ theta - tilt @ theta


def loss_error(theta, arms, counts, sums, ridge, tilt):
    """What rounding can do to the loss: its terms are large and nearly cancel, so their sizes count and not its own."""
    scores = arms @ theta
    sizes = counts @ np.logaddexp(0, scores) + np.abs(sums) @ np.abs(scores) + ridge / 2 * theta @ theta
    return 100 * np.finfo(float).eps * (sizes + np.abs(tilt) @ np.abs(theta))


def gradient(theta, arms, counts, sums, ridge, tilt):
    return arms.T @ (counts * sigmoid(arms @ theta) - sums) + ridge * theta - tilt


def hessian(theta, arms, counts, ridge):
    scores = arms @ theta
    slopes = counts * sigmoid(scores) * sigmoid(-scores)
    return arms.T @ (slopes[:, None] * arms) + ridge * np.eye(len(theta))


def estimate(arms, counts, sums, ridge, tilt=None, start=None, tolerance=1e-10):
    """The minimizer of the tilted loss: Newton steps, halved until the loss falls, until the gradient vanishes."""
    tilt = np.zeros(arms.shape[1]) if tilt is None else tilt
    problem = (arms, counts, sums, ridge, tilt)
    theta = np.zeros(arms.shape[1]) if start is None else start
    size = 1 + np.max(np.abs(arms.T @ sums)) + np.max(np.abs(tilt))
    for _ in range(500):
        slope = gradient(theta, *problem)
        if np.max(np.abs(slope)) <= tolerance * size:
            return theta
        step = -np.linalg.solve(hessian(theta, arms, counts, ridge), slope)
        now, length = loss(theta, *problem), 1.0
        # The error lets a step pass that is too small to be seen in the loss.
        error = loss_error(theta, *problem)
        while loss(theta + length * step, *problem) > now + 1e-4 * length * slope @ step + error:
            length /= 2
        theta = theta + length * step
    raise AssertionError("the reference estimate did not converge")


def checked_root(root, square):
    """The root as given if R Rᵀ is the matrix it must be, a Cholesky factor if none is given."""
    if root is None:
        return np.linalg.cholesky(square)
    np.testing.assert_allclose(root @ root.T, square, rtol=0, atol=1e-6 * np.max(np.abs(square)))
    return root


class Policy:
    """Counts, sums and the estimate on them."""

    def __init__(self, arms, scale, ridge=1.0):
        self.arms, self.scale, self.ridge = np.asarray(arms, float), scale, ridge
        self.counts, self.sums = np.zeros(len(arms)), np.zeros(len(arms))
        self.theta_hat = np.zeros(self.arms.shape[1])

    def update(self, arm, reward):
        self.counts[arm] += 1
        self.sums[arm] += reward
        self.theta_hat = estimate(self.arms, self.counts, self.sums, self.ridge, start=self.theta_hat)

    @property
    def gram(self):
        return self.arms.T @ (self.counts[:, None] * self.arms)

    @property
    def widths(self):
        """‖x‖_{G⁻¹} of each arm."""
        inverse = np.linalg.inv(self.gram + GRAM_RIDGE * np.eye(self.arms.shape[1]))
        return np.sqrt(np.sum((self.arms @ inverse) * self.arms, axis=1))


class TSL(Policy):
    def scores(self, noise, root=None):
        root = checked_root(root, np.linalg.inv(hessian(self.theta_hat, self.arms, self.counts, self.ridge)))
        return self.arms @ (self.theta_hat + self.scale * root @ noise)


class FPL(Policy):
    def scores(self, noise, root=None):
        tilt = self.scale * checked_root(root, self.gram) @ noise
        return self.arms @ self.perturbed(self.sums, tilt)

    def scores_by_rewards(self, noise):
        """As the paper defines it: the noise of N_x rewards has variance a² N_x in their sum."""
        return self.arms @ self.perturbed(self.sums + self.scale * np.sqrt(self.counts) * noise, None)

    def tilt_of(self, scores):
        """The tilt whose estimate has these scores: where the tilted gradient vanishes the plain one is the tilt."""
        theta = np.linalg.lstsq(self.arms, scores, rcond=None)[0]
        return gradient(theta, self.arms, self.counts, self.sums, self.ridge, np.zeros_like(theta))

    def perturbed(self, sums, tilt):
        return estimate(self.arms, self.counts, sums, self.ridge, tilt, self.theta_hat)


class UCBGLM(Policy):
    def scores(self, noise=None):
        return self.arms @ self.theta_hat + self.scale * self.widths


class GLMUCB(Policy):
    def scores(self, noise=None):
        return sigmoid(self.arms @ self.theta_hat) + self.scale * self.widths


POLICIES = {"glm_tsl": TSL, "glm_fpl": FPL, "ucb_glm": UCBGLM, "glm_ucb": GLMUCB}
INFORMAL = {"glm_tsl": 1.0, "glm_fpl": 0.5, "ucb_glm": 0.5, "glm_ucb": 0.5}


def theory_scale(name, arms, rounds):
    """The paper's exploration for logistic rewards: σ = 1/2, μ̇min = μ̇max = 1/4, R_max = 1, δ = 1/n."""
    n, d = rounds, np.shape(arms)[1]
    confidence = 2 * np.sqrt(d * np.log(n / d) + 2 * np.log(n))
    longest = np.max(np.sum(np.square(arms), axis=1))
    return {
        "glm_tsl": confidence / 2,
        "glm_fpl": confidence / 4,
        "ucb_glm": 2 * np.sqrt(d / 2 * np.log(1 + 2 * n / d) + np.log(n)),
        "glm_ucb": 2 * np.sqrt(3 + 2 * np.log(1 + 2 * longest)) * np.sqrt(2 * d * np.log(n) * np.log(2 * d * n**2)),
    }[name]


def play(policy, means, forced, rounds, rng, *, by_rewards=False):
    """Expected regret of one run: the forced arms first, then the best score."""
    regret = 0.0
    for t in range(rounds):
        if t < len(forced):
            arm = forced[t]
        elif by_rewards:
            arm = np.argmax(policy.scores_by_rewards(rng.normal(size=len(means))))
        else:
            arm = np.argmax(policy.scores(rng.normal(size=policy.arms.shape[1])))
        policy.update(arm, float(rng.random() < means[arm]))
        regret += np.max(means) - means[arm]
    return regret
